"""Parsed graphs beside true ones: of `scenes`, and by hand of Flickr30K and Flickr8k captions."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from graph_accuracy import Accuracy, accuracy, lemmatiser
from written_graphs import read, table

from manymatch.batch.scene_graph import SceneGraph
from manymatch.datasets.scenes import CAPTIONS, Scenes, ScenesSettings, read_rows
from manymatch.scene_graphs.parser import graphs

LEAST_F1 = {
    "flickr30k_work.tsv": {"objects": 0.98, "attributes": 0.96, "relations": 0.93},
    "flickr30k_kept.tsv": {"objects": 0.97, "attributes": 0.94, "relations": 0.85},
    "flickr30k_unseen.tsv": {"objects": 0.96, "attributes": 0.89, "relations": 0.81},
    "flickr8k_fresh.tsv": {"objects": 0.98, "attributes": 0.97, "relations": 0.84},
    "flickr8k_last.tsv": {"objects": 0.96, "attributes": 0.88, "relations": 0.85},
    "flickr8k_unread.tsv": {"objects": 0.95, "attributes": 0.91, "relations": 0.78},
}


def test_counts_by_hand():
    """Parts are multisets, and those of different captions do not match."""
    parsed = read("man; hat [red, big]; dog | man wear hat; man on dog")
    true = read("man; hat [red]; cat [big]; cat | man wear hat")
    assert accuracy([(parsed, true), (read("dog"), read("cat"))], str) == {
        "objects": Accuracy(matched=2, parsed=4, true=5),
        "attributes": Accuracy(matched=1, parsed=2, true=2),
        "relations": Accuracy(matched=1, parsed=2, true=1),
    }
    assert Accuracy(matched=2, parsed=3, true=4).f1 == pytest.approx(4 / 7)


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


def test_f1_on_scenes(tmp_path, model):
    settings = ScenesSettings(seed=11, train=120, validation=15, test=15, image_size=32)
    Scenes().download(settings, tmp_path)
    rows = (row for _, row in read_rows(tmp_path / CAPTIONS))
    truth = {row["caption_id"]: SceneGraph.from_dict(row["graph"]) for row in rows}
    captions = {row.caption_id: row.caption for row in Scenes().captions(tmp_path)}
    parsed = graphs(model, list(captions.values()), Counter())
    pairs = ((graph, truth[name]) for name, graph in zip(captions, parsed, strict=True))
    scores = accuracy(pairs, lemmatiser(model))
    least = {"objects": 0.97, "attributes": 0.95, "relations": 0.90}
    assert not {kind for kind, score in scores.items() if score.f1 < least[kind]}, scores
