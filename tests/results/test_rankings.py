"""The ranks that the report takes from the tables of rankings."""

import numpy as np
import pytest

from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import write_ranked
from manymatch.results.runs import Run, recall_at
from manymatch.util.errors import DataError

IDS = ["a#0", "b%#0", "c"]
RECALLS = {"r1": 33.3, "r5": 66.7, "r10": 66.7, "medr": 3.0, "meanr": 4.0}


def positive_ranks(folder, **recalls):
    """The ranks of a run whose tables are in `folder`, and whose recalls are a third and two thirds
    unless others are given."""
    way = RECALLS | recalls
    metrics = Metrics.model_validate({"i2t": way, "t2i": way, "rsum": 0.0})
    return Run(metrics, Provenance.model_construct(), {}, None, folder=folder).positive_ranks


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t2i.parquet"
    write_ranked(path, IDS, np.array([3, 1, 11]), np.zeros((3, 10)), np.zeros((3, 10)), None)
    return path


def test_ranks_are_exact_behind_the_kept_answers_too(path):
    known = positive_ranks(path.parent)
    ranks = known["t2i"]
    assert known["i2t"] is None  # there is no table of images
    assert ranks == {"a#0": 3, "b%#0": 1, "c": 11}
    assert [round(recall_at(ranks, k), 1) for k in (1, 2, 3)] == [33.3, 33.3, 66.7]
    assert set(positive_ranks(None).values()) == {None}


def test_a_table_of_another_evaluation_is_not_used(path):
    assert positive_ranks(path.parent, r1=33.25)["t2i"] is not None  # rounded
    assert positive_ranks(path.parent, r1=30.0)["t2i"] is None


def test_a_damaged_table_is_one_line(path):
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"t2i\.parquet: not a table") as error:
        positive_ranks(path.parent)
    assert "\n" not in str(error.value)
