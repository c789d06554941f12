"""Validation: recalls as in the evaluation, and the share of right results at a score."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from forked import in_processes
from sklearn.isotonic import IsotonicRegression

from manymatch.datasets.base import RELEVANCE
from manymatch.evaluation.protocols.recall import recall
from manymatch.model.embed import embed
from manymatch.shards.read import batches
from manymatch.training.data import ValidationBatches
from manymatch.training.validation import precision_by_score, validate
from manymatch.util.errors import DivergenceError
from manymatch.util.parquet_file import table_writer


@pytest.mark.parametrize(
    ("complete", "judged", "right"), [(True, 3, "all"), (False, 3, "judged"), (False, 0, "own")]
)
def test_precision_counts_judged_pairs(complete, judged, right, data, built, tmp_path):
    device, method = torch.device("cpu"), built("vsepp").eval()
    split = embed(method, batches(data.shards, "validation", data.vocabulary, 3), device)
    recalls = recall(method.score, *split.gallery)
    found = validate(method, ValidationBatches(data, 5, None), device)
    assert (found["i2t_r1"], found["rsum"]) == (recalls["i2t"]["r1"], recalls["rsum"])
    n, texts = len(split.images), range(len(split.texts))
    extra = [(int(i + 1) % n, j) for i, j in zip(split.image_index, texts, strict=True)][:judged]
    table = pa.table(
        {
            "image_id": [split.image_ids[i] for i, _ in extra],
            "caption_id": [split.caption_ids[j] for _, j in extra],
        },
        RELEVANCE.with_metadata({"complete": str(complete).lower()}),
    )
    with table_writer(tmp_path / "relevance.parquet", table.schema) as writer:
        writer.write_table(table)
    found = precision_by_score(method, data, 3, device, tmp_path / "relevance.parquet")
    assert found["precision_of"] == {"images": n, "right": right}

    true = {(int(i), j) for j, i in enumerate(split.image_index)} | set(extra)
    with torch.inference_mode():
        scores = method.score(split.images, split.texts)
    pairs = [(float(scores[i, j]), (i, j) in true) for i in range(n) for j in texts]
    expected = IsotonicRegression().fit_transform(*zip(*pairs, strict=True))
    for curve in found["precision"].values():  # fewer than 100 results a query: all pairs count
        shares = np.interp([score for score, _ in pairs], *curve)
        assert shares == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("side", "named"), [("image", "every image"), ("text", "every caption")])
@pytest.mark.parametrize("measure", [validate, precision_by_score])
def test_a_side_of_zeros_is_refused(side, named, measure, data, built):
    method, device = built("vsepp"), torch.device("cpu")
    for weights in getattr(method, side).parameters():
        weights.data.zero_()
    split = (ValidationBatches(data, 5, None), device)
    with pytest.raises(DivergenceError, match=named):
        measure(method, *(split if measure is validate else (data, 5, device)))


@pytest.mark.parametrize("empty", [{1}, {0, 1}])
def test_zeros_are_refused_if_all_processes_have_them(empty, data, built, tmp_path):
    """The process with zeros alone would end, and the others would wait for ever."""

    def work(rank):
        method, device = built("vsepp"), torch.device("cpu")
        if rank in empty:
            for weights in method.image.parameters():
                weights.data.zero_()
        try:
            return bool(validate(method, ValidationBatches(data, 3, None, rank, 2), device, rank))
        except DivergenceError:
            return "refused"

    expected = ["refused"] * 2 if len(empty) == 2 else [True, False]
    assert in_processes(2, work, tmp_path) == expected
