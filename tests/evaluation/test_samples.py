"""Sample queries: what they show and how it is marked."""

import base64
import json

import numpy as np
import torch

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import SceneGraph
from manymatch.evaluation.protocols.relevance import Judgments, Labels
from manymatch.evaluation.ranking.ranks import Direction, Ranking
from manymatch.evaluation.samples import sample_queries
from manymatch.shards.sample import Sample

INDEX = torch.tensor([0, 0, 1, 2])
GRAPH = SceneGraph(("dog",), ("dog",), ((),), ())


def _stored(rows):
    captions = {0: ("a0", "a1"), 1: ("b0",), 2: ("c0",)}
    for row in rows:
        entries = tuple(CaptionEntry(name, f"text {name}", GRAPH) for name in captions[row])
        yield Sample(
            key=str(row),
            image_id="abc"[row],
            file="",
            labels=(),
            captions=entries,
            features=np.zeros((1, 1), np.float16),
            thumbnail=b"\xff\xd8jpeg" if row == 0 else None,
        )


def _ranking():
    i2t = torch.tensor([[1, 2, 3], [3, 2, 0], [0, 1, 2]])
    t2i = torch.tensor([[0, 1], [1, 0], [0, 1], [2, 0]])
    return Ranking(
        Direction(torch.tensor([1, 2, 1]), i2t, torch.tensor([0.9, 0.5, 0.123456]).expand(3, 3)),
        Direction(torch.tensor([1, 2, 9, 1]), t2i, torch.tensor([0.9, 0.5]).expand(4, 2)),
    )


def _samples(count):
    judged = Judgments(torch.tensor([[0, 2], [1, 1]]), True)
    return sample_queries(_ranking(), INDEX, judged, _stored, count)


def test_all_queries_are_shown_with_marks():
    samples = _samples(10)
    first = samples.images[0]
    assert first.image_id == "a"
    assert first.captions == ["text a0", "text a1"]
    assert base64.b64decode(first.thumbnail) == b"\xff\xd8jpeg"
    assert first.to_json()["retrieved"] == [
        {"caption_id": "a1", "caption": "text a1", "score": 0.9, "mark": "own"},
        {"caption_id": "b0", "caption": "text b0", "score": 0.5, "mark": "true"},
        {"caption_id": "c0", "caption": "text c0", "score": 0.1235, "mark": "wrong"},
    ]
    second = samples.captions[1]
    assert (second.caption_id, second.caption) == ("a1", "text a1")
    assert second.graph.objects == ("dog",)
    assert [(item.image_id, item.mark) for item in second.retrieved] == [
        ("b", "true"),
        ("a", "own"),
    ]
    assert second.retrieved[0].thumbnail is None


def test_an_answer_that_nobody_judged_is_not_called_wrong():
    true, false = torch.tensor([[0, 2], [1, 1]]), torch.tensor([[2, 0]])
    judged = Judgments(true, complete=False, judged_false=false)
    samples = sample_queries(_ranking(), INDEX, judged, _stored, 10)
    assert [item.mark for item in samples.images[0].retrieved] == ["own", "true", "unjudged"]
    assert [item.mark for item in samples.images[2].retrieved] == ["wrong", "unjudged", "unjudged"]


def test_where_images_have_labels_answers_have_their_zeta():
    labels = Labels([(1, 2), (2, 3), ()])
    judged = Judgments(torch.empty(0, 2, dtype=torch.int64), False)
    samples = sample_queries(_ranking(), INDEX, judged, _stored, 10, labels=labels)
    assert [item.zeta for item in samples.images[0].retrieved] == [0, 2, None]
    assert [item.zeta for item in samples.captions[2].retrieved] == [2, 0]
    assert [item.zeta for item in samples.captions[3].retrieved] == [None, None]
    without_label = samples.captions[3].retrieved[0]
    assert without_label.to_json()["zeta"] is None  # "no label" is written, unlike "not COCO"


def test_the_hardest_queries_of_the_split_join_the_drawn_ones():
    samples = _samples(1)
    assert [(query.id, query.rank) for query in samples.captions][-1] == ("b0", 9)
    assert [(query.id, query.rank) for query in samples.images][-1] == ("b", 2)
    assert len(samples.captions) <= 2 and len(_samples(0).captions) == 0


def test_of_own_data_all_hardest_captions_and_near_duplicates_are_shown():
    groups = [
        [["c", "test"], ["a", "test"]],
        [["x", "train"], ["y", "train"]],
        [["x", "train"], ["b", "test"]],
    ]
    of_split = {"train": 2, "validation": 0, "test": 14}
    known = json.dumps({"copies": 3, "crossing": 1, "of_split": of_split, "groups": groups})
    ranking = _ranking()
    t2i = Direction(torch.tensor([2, 1, 3, 3]), ranking.t2i.items, ranking.t2i.scores)
    judged = Judgments(torch.tensor([[0, 2], [1, 1]]), True)
    shown = sample_queries(
        Ranking(ranking.i2t, t2i), INDEX, judged, _stored, 1, ["a", "b", "c"], duplicates=known
    )
    assert len(shown.captions) == 4  # all
    by_id = {query.id: query for query in shown.captions}
    assert (by_id["b0"].rank, by_id["b0"].image_id, by_id["c0"].thumbnail) == (3, "b", None)
    assert [item.mark for item in by_id["b0"].retrieved] == ["true", "own"]
    found = shown.near_duplicates
    assert (found.copies, found.crossing, found.found) == (3, 1, 14)
    assert [[one.image_id for one in group] for group in found.groups] == [["c", "a"], ["x", "b"]]
    assert found.groups[0][1].thumbnail and found.groups[1][0].thumbnail is None
