"""An index in use: the results are those of scoring everything, and errors are one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manymatch import Index, Model, load
from manymatch.search.index.build import build
from manymatch.search.index.sources import source_of

METHODS = ["vsepp", "maxmatch", "swamp", "cora"]
TEXTS = ["a red bird above a table", "two dogs", "\U0001f600", "xyzzy"]
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with five captions."""
    path = tmp_path_factory.mktemp("captions") / "captions.txt"
    path.write_text("\n".join([*TEXTS, "", "a dog beside the red boat"]))
    return path


def made(source: Path, model: Model, model_path: Path, target: Path, **options: Any) -> Index:
    build(source_of(source), model, target, str(model_path), **options)
    return Index.open(target, model)


@pytest.mark.parametrize("method", METHODS)
def test_results_are_those_of_scoring_everything(
    method: str, make_model: Make, pictures: list[Path], captions: Path, tmp_path: Path
) -> None:
    folder = make_model(method)
    model = load(folder, "cpu")
    images = made(pictures[0].parent, model, folder, tmp_path / "images")
    texts = made(captions, model, folder, tmp_path / "texts")
    lines = [line for line in captions.read_text().splitlines() if line]
    embedded = model.encode_images(sorted(pictures)), model.encode_texts(lines)
    similar = images.similar(images.search(TEXTS[0], 1).results[0].id)
    assert len(similar.results) == len(pictures) - 1

    scores = model.score(*embedded, "text").numpy()
    for answer, column in zip(images.search_all(lines), scores.T, strict=True):
        order = np.argsort(-column, kind="stable")
        assert [result.path for result in answer.results] == [pictures[row].name for row in order]
        np.testing.assert_allclose([r.score for r in answer.results], column[order], atol=1e-6)
        assert answer.exact
    scores = model.score(*embedded, "image").numpy()
    for answer, row in zip(texts.search_all(sorted(pictures), 2), scores, strict=True):
        order = np.argsort(-row, kind="stable")[:2]
        assert [result.text for result in answer.results] == [lines[column] for column in order]
        np.testing.assert_allclose([r.score for r in answer.results], row[order], atol=1e-6)
