"""The ranks that the report takes from the tables of rankings."""

import numpy as np
import pytest

from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import write_ranked
from manymatch.results.runs import Run, recall_at
from manymatch.util.errors import DataError


def positive_ranks(folder, r1=33.3):
    """The ranks of a run whose tables are in `folder`; R@5 and R@10 are two thirds."""
    way = {"r1": r1, "r5": 66.7, "r10": 66.7, "medr": 3.0, "meanr": 4.0}
    metrics = Metrics.model_validate({"i2t": way, "t2i": way, "rsum": 0.0})
    return Run(metrics, Provenance.model_construct(), {}, None, folder=folder).positive_ranks


def test_ranks_are_exact_and_a_table_of_another_evaluation_or_a_damaged_one_is_not_used(tmp_path):
    path, scores = tmp_path / "t2i.parquet", np.zeros((3, 10))
    write_ranked(path, ["a#0", "b%#0", "c"], np.array([3, 1, 11]), scores, scores, None)
    known = positive_ranks(tmp_path)
    ranks = known["t2i"]
    assert known["i2t"] is None  # there is no table of images
    assert ranks == {"a#0": 3, "b%#0": 1, "c": 11}  # also behind the kept answers
    assert [round(recall_at(ranks, k), 1) for k in (1, 2, 3)] == [33.3, 33.3, 66.7]
    assert set(positive_ranks(None).values()) == {None}
    assert positive_ranks(tmp_path, r1=33.25)["t2i"] is not None  # rounded
    assert positive_ranks(tmp_path, r1=30.0)["t2i"] is None
    whole = path.read_bytes()
    write_ranked(path, [], np.zeros(0), scores[:0], scores[:0], None)
    assert positive_ranks(tmp_path)["t2i"] is None
    path.write_bytes(whole[:100])
    with pytest.raises(DataError, match=r"t2i\.parquet: not a table[^\n]*$"):
        positive_ranks(tmp_path)
