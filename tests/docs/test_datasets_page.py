"""The page on datasets: its settings are valid, and those that are committed too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from manymatch.config.params import read_params
from manymatch.datasets import DATASETS, check_settings

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"scenes", "flickr8k", "own"}
"""Described in params.yaml and on the page docs/own-data.md."""
PAGE = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", BLOCKS)
def test_the_settings_are_valid(text: str) -> None:
    ((name, settings),) = yaml.safe_load(text).items()
    assert check_settings(name, settings).model_dump(exclude_unset=True).keys() == settings.keys()


def test_the_page_has_settings_of_each() -> None:
    named = {name for text in BLOCKS for name in yaml.safe_load(text)}
    assert named == DATASETS.keys() - ELSEWHERE
    assert all(f"`{name}`" in PAGE for name in named)


@pytest.mark.parametrize("name", sorted(DATASETS.keys() - ELSEWHERE))
def test_the_committed_sources_are_valid(name: str) -> None:
    settings = read_params(ROOT / "params.yaml").source(name)
    checked = check_settings(name, settings)
    assert checked.model_dump().keys() == settings.keys(), "all settings are shown"


def test_the_committed_files_of_coco_have_mirrors() -> None:
    settings = read_params(ROOT / "params.yaml").source("coco")
    for key in ("images", "captions", "instances"):
        sources = settings[key] if isinstance(settings[key], list) else [settings[key]]
        assert all(source["mirrors"] for source in sources)
