"""Parsed graphs of Flickr30K captions, compared with graphs by hand, without lemmatisation."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from spacy.language import Language
from written_graphs import read, table

from manymatch.scene_graphs.accuracy import accuracy
from manymatch.scene_graphs.parser import graphs

LEAST_F1 = {
    "flickr30k_work.tsv": {"objects": 0.97, "attributes": 0.94, "relations": 0.91},
    "flickr30k_kept.tsv": {"objects": 0.96, "attributes": 0.89, "relations": 0.84},
    "flickr30k_unseen.tsv": {"objects": 0.95, "attributes": 0.89, "relations": 0.79},
}


@pytest.fixture(scope="module")
def captions(real_data: Path) -> dict[str, str]:
    """Captions of Flickr30K's training split by image and number, from the files of Multi30K."""
    folder = real_data / "flickr30k" / "multi30k_task2"
    images = (folder / "train_images.txt").read_text("utf-8").split()
    return {
        f"{image}#{number}": caption
        for number in range(5)
        for image, caption in zip(
            images,
            gzip.open(folder / f"train.{number + 1}.en.gz", "rt", encoding="utf-8"),
            strict=True,
        )
    }


@pytest.mark.parametrize("file", LEAST_F1)
def test_f1_on_flickr30k(model: Language, captions: dict[str, str], file: str) -> None:
    true = table(Path(__file__).with_name(file))
    parsed = graphs(model, [captions[name] for name in true], Counter())
    scores = accuracy(zip(parsed, map(read, true.values()), strict=True), str)
    least = LEAST_F1[file]
    assert not {kind for kind, score in scores.items() if score.f1 < least[kind]}, scores
