"""Parsed graphs of the `scenes` captions, compared with their true graphs."""

from collections import Counter

import pytest
from graph_accuracy import accuracy, lemmatiser

from manymatch.batch.scene_graph import SceneGraph
from manymatch.datasets.scenes import CAPTIONS, Scenes, ScenesSettings, read_rows
from manymatch.scene_graphs.parser import graphs

LEAST_F1 = {"objects": 0.97, "attributes": 0.95, "relations": 0.90}


@pytest.mark.slow
def test_f1_on_scenes(tmp_path, model):
    settings = ScenesSettings(seed=11, train=120, validation=15, test=15, image_size=32)
    Scenes().download(settings, tmp_path)
    rows = (row for _, row in read_rows(tmp_path / CAPTIONS))
    truth = {row["caption_id"]: SceneGraph.from_dict(row["graph"]) for row in rows}
    captions = {row.caption_id: row.caption for row in Scenes().captions(tmp_path)}
    parsed = graphs(model, list(captions.values()), Counter())
    pairs = ((graph, truth[name]) for name, graph in zip(captions, parsed, strict=True))
    scores = accuracy(pairs, lemmatiser(model))
    assert not {kind for kind, score in scores.items() if score.f1 < LEAST_F1[kind]}, scores
