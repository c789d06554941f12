"""Tiny text models of transformers, each saved once."""

import hub_texts
import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    made = {}

    def folder(family):
        if family not in made:
            made[family] = hub_texts.save(tmp_path_factory.mktemp(family), family)
        return made[family]

    return folder
