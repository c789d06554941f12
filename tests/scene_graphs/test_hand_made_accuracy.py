"""Parsed graphs of Flickr30K and Flickr8k captions, compared with graphs by hand."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from graph_accuracy import accuracy
from written_graphs import read, table

from manymatch.scene_graphs.parser import graphs

LEAST_F1 = {
    "flickr30k_work.tsv": {"objects": 0.98, "attributes": 0.96, "relations": 0.93},
    "flickr30k_kept.tsv": {"objects": 0.97, "attributes": 0.94, "relations": 0.85},
    "flickr30k_unseen.tsv": {"objects": 0.96, "attributes": 0.89, "relations": 0.81},
    "flickr8k_fresh.tsv": {"objects": 0.98, "attributes": 0.97, "relations": 0.84},
    "flickr8k_last.tsv": {"objects": 0.96, "attributes": 0.88, "relations": 0.85},
    "flickr8k_unread.tsv": {"objects": 0.95, "attributes": 0.91, "relations": 0.78},
}


@pytest.fixture(scope="module")
def captions(real_data):
    """Captions by image and number: Flickr30K's training split from Multi30K, and Flickr8k."""
    folder = real_data / "flickr30k" / "multi30k_task2"
    images = (folder / "train_images.txt").read_text("utf-8").split()
    flickr8k = (real_data / "flickr8k" / "Flickr8k.token.txt").read_text("utf-8").splitlines()
    return dict(line.split("\t") for line in flickr8k) | {
        f"{image}#{number}": caption
        for number in range(5)
        for image, caption in zip(
            images,
            gzip.open(folder / f"train.{number + 1}.en.gz", "rt", encoding="utf-8"),
            strict=True,
        )
    }


@pytest.mark.parametrize("file", LEAST_F1)
def test_f1_by_hand(model, captions, file):
    true = table(Path(__file__).with_name(file))
    parsed = graphs(model, [captions[name] for name in true], Counter())
    scores = accuracy(zip(parsed, map(read, true.values()), strict=True), str)
    least = LEAST_F1[file]
    assert not {kind for kind, score in scores.items() if score.f1 < least[kind]}, scores
