"""Recall and multi-match numbers: hand-computed, naive, and the ECCV Caption package's own."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from forked import forked
from made_scores import looked_up, ranked_split

from manymatch.datasets.base import JUDGED, RELEVANCE
from manymatch.evaluation import protocols
from manymatch.evaluation.protocols import suite
from manymatch.evaluation.protocols.recall import multi_match, ranks_of_relevant, relevant_ranks
from manymatch.evaluation.protocols.relevance import NO_JUDGMENTS, Judgments, read_judgments
from manymatch.evaluation.ranking.metrics import multi_match_metrics, recall_metrics, rsum
from manymatch.evaluation.split_results import measure
from manymatch.model import scores as blocks
from manymatch.results.metrics import Metrics
from manymatch.util.errors import DataError

NAMES = ("map_at_r", "r_precision", "r1")


def _multi(table, index, extra, complete, back=None):
    judged = Judgments(torch.tensor(extra), complete)
    return multi_match(ranked_split(table, torch.tensor(index), back=back), judged)


def test_recall_by_hand():
    metrics = recall_metrics(torch.tensor([1, 1, 2, 5, 6, 10, 11, 100]))
    assert metrics == {"r1": 25.0, "r5": 50.0, "r10": 75.0, "medr": 5.0, "meanr": 17.0}
    assert rsum(metrics, metrics) == 300.0


def test_multi_match_by_hand():
    scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5]])
    relevant = torch.tensor([[True, False, True, False, True]])
    result = multi_match_metrics([ranks_of_relevant(scores, relevant)])
    # R = 3: ranks 1 and 3 are in, precisions 1 and 2/3
    expected = [100 * (1 + 2 / 3) / 3, 200 / 3, 100.0]
    assert [result[name] for name in NAMES] == pytest.approx(expected)


def _random(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    index = np.repeat(np.arange(n), rng.integers(1, 5, n))
    table = torch.from_numpy(rng.permutation(n * len(index)).reshape(n, -1)).float()
    extra = [
        [image, text]
        for image in range(n)
        for text in range(len(index))
        if index[text] != image and rng.random() < 0.3
    ]
    return table, index.tolist(), extra or [[0, len(index) - 1]]


def _relevant(index, extra, complete, column):
    pairs = [[image, text] for text, image in enumerate(index)] + extra
    values = {}
    for pair in pairs:
        values.setdefault(pair[column], []).append(pair[1 - column])
    judged = {pair[column] for pair in extra}
    return values if complete else {query: values[query] for query in judged}


@pytest.mark.parametrize("complete", [True, False])
def test_multi_match_equals_the_eccv_caption_package(complete):
    package = pytest.importorskip("eccv_caption._metrics")
    for seed in range(5):
        table, index, extra = _random(seed)
        result = _multi(table, index, extra, complete)
        for column, (direction, scores) in enumerate([("i2t", table), ("t2i", table.T)]):
            ranked = dict(enumerate(scores.argsort(1, descending=True).tolist()))
            truth = _relevant(index, extra, complete, column)
            expected = package.compute_eccv_metrics(ranked, truth)
            assert [result[direction][name] for name in NAMES] == pytest.approx(
                [100 * expected[f"eccv_{name}"] for name in ("map_at_r", "rprecision", "r1")]
            )


@pytest.mark.parametrize("complete", [True, False])
def test_positives_of_other_images_and_ambiguity_equal_a_loop(complete):
    for seed in range(5):
        table, index, extra = _random(seed)
        result = _multi(table, index, extra, complete)
        for column, (direction, scores) in enumerate([("i2t", table), ("t2i", table.T)]):
            annotated = _relevant(index, [], True, column)
            shares, groups = [], {}
            for query, positives in _relevant(index, extra, complete, column).items():
                ranked = scores[query].argsort(descending=True).tolist()
                others = set(positives) - set(annotated[query])
                left = [item for item in ranked if item not in annotated[query]]
                if others:
                    shares.append(len(others & set(left[: len(others)])) / len(others))
                count = len(positives)
                hits = [item in positives for item in ranked[:count]]
                precisions = [sum(hits[:k]) / k for k in range(1, count + 1) if hits[k - 1]]
                groups.setdefault(count.bit_length() - 1, []).append(sum(precisions) / count)
            assert result[direction]["others"] == pytest.approx(100 * np.mean(shares))
            ordered = [groups[group] for group in sorted(groups)]
            assert result[direction]["by_positives"] == {
                "least": [2**group for group in sorted(groups)],
                "queries": [len(group) for group in ordered],
                "map_at_r": pytest.approx([100 * np.mean(group) for group in ordered]),
            }


def test_multi_match_in_blocks(monkeypatch):
    for at_once in (1, 17, 10_000):
        table, index, extra = _random(3)
        pairs = torch.tensor([[index[text], text] for text in range(len(index))] + extra)
        monkeypatch.setattr(blocks, "SCORES_AT_ONCE", at_once)
        parts = list(relevant_ranks(*looked_up(table), pairs))
        expected = _multi(table, index, extra, True)["i2t"]
        assert multi_match_metrics(parts) == {name: expected[name] for name in NAMES}


def test_multi_match_by_one_score_there_and_another_back():
    there, index, extra = _random(3)
    back = _random(3)[0].flip(1)
    result = _multi(there, index, extra, True, back)
    assert result["i2t"] == _multi(there, index, extra, True)["i2t"]
    assert result["t2i"] == _multi(back, index, extra, True)["t2i"]
    assert result["t2i"] != _multi(there, index, extra, True)["t2i"]


def _table(path, pairs, complete="true"):
    schema = RELEVANCE.with_metadata({"complete": complete})
    columns = [list(column) for column in zip(*pairs, strict=True)] or [[], []]
    pq.write_table(pa.table(columns, schema=schema), path)
    return path


def test_judgments_keep_this_splits_foreign_pairs(tmp_path):
    pairs = [("b", "a0"), ("a", "a0"), ("b", "a0"), ("elsewhere", "a0"), ("a", "x9"), ("a", "b0")]
    path = _table(tmp_path / "relevance.parquet", pairs)
    judgments = read_judgments(path, ["a", "b"], ["a0", "a1", "b0"], torch.tensor([0, 0, 1]))
    assert judgments.extra.tolist() == [[0, 2], [1, 0]]
    assert judgments.complete and not len(judgments.judged_false)


@pytest.mark.parametrize("name", ["judged.parquet", "judged.csv"])
def test_pairs_may_be_judged_false(tmp_path, name):
    rows = [("b", "a0", True), ("a", "b0", False), ("a", "a1", False), ("x", "a0", False)]
    if name.endswith("csv"):
        lines = [f"{image},{caption},{str(true).lower()}" for image, caption, true in rows]
        (tmp_path / name).write_text("\n".join(["image_id,caption_id,relevant", *lines]) + "\n")
    else:
        pq.write_table(pa.table(list(zip(*rows, strict=True)), schema=JUDGED), tmp_path / name)
    image_index = torch.tensor([0, 0, 1])
    judgments = read_judgments(tmp_path / name, ["a", "b"], ["a0", "a1", "b0"], image_index)
    assert judgments.extra.tolist() == [[1, 0]] and not judgments.complete
    assert judgments.judged_false.tolist() == [[0, 2]]  # an image's own pair is never false
    assert judgments and not NO_JUDGMENTS


ADDED = """
from manymatch.evaluation.protocols.ranked_split import Protocol
PROTOCOLS = [Protocol("span", ("scenes",), lambda split: {"best": len(split.ranking.i2t.ranks)})]
"""


def test_a_protocol_is_one_new_file(tmp_path):
    (tmp_path / "span.py").write_text(ADDED)

    def work():
        protocols.__path__.append(str(tmp_path))
        suite.protocols.cache_clear()
        split = ranked_split(torch.eye(2), torch.arange(2))
        numbers = measure(split, NO_JUDGMENTS, "scenes")
        Metrics.model_validate(numbers).write(tmp_path / "m.json")
        assert suite.protocol_metrics(["span"], split) == {"span": {"best": 2}}

    _, status = os.waitpid(forked(work), 0)
    assert status == 0
    written = Metrics.read(tmp_path / "m.json")
    assert written.numbers()["span.best"] == 2 and written.rsum == 600


def test_faulty_judgments_are_one_line(tmp_path):
    path = tmp_path / "relevance.parquet"
    for content in (None, b"not parquet", "columns"):
        if content == "columns":
            pq.write_table(pa.table({"image": ["a"]}), path)
        elif content is not None:
            path.write_bytes(content)
        with pytest.raises(DataError, match=r"relevance\.parquet: .*stage 'captions'") as fault:
            read_judgments(path, ["a"], ["a0"], torch.tensor([0]))
        assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b0,1\na,b0,false\n", "a and b0 are judged true in one row and false in another"),
        ("a,b0,true\nb,a0,yes\n", "row 2: relevant is 'yes'. Write true or false"),
        ("a,b0,\n", "row 1: relevant is ''"),
    ],
)
def test_judgments_of_a_person_that_say_both_or_nothing(tmp_path, rows, message):
    path = tmp_path / "judged.csv"
    path.write_text("image_id,caption_id,relevant\n" + rows)
    with pytest.raises(DataError, match=message):
        read_judgments(path, ["a", "b"], ["a0", "b0"], torch.tensor([0, 1]))
