"""Validation: recalls as in the evaluation, and the share of right results at a score."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.isotonic import IsotonicRegression
from small_methods import small

from manymatch.batch.vocabulary import Vocabulary
from manymatch.datasets.base import RELEVANCE
from manymatch.evaluation.protocols.recall import recall
from manymatch.methods import build_method
from manymatch.model.embed import embed
from manymatch.shards.read import batches
from manymatch.training.data import Data, ValidationBatches
from manymatch.training.validation import precision_by_score, validate
from manymatch.util.parquet_file import table_writer


@pytest.mark.parametrize(
    ("complete", "judged", "right"), [(True, 3, "all"), (False, 3, "judged"), (False, 0, "own")]
)
def test_precision_counts_judged_pairs(complete, judged, right, tiny, tmp_path):
    vocabulary = Vocabulary.load(tiny.vocabulary)
    data, device = Data(tiny.shards, vocabulary), torch.device("cpu")
    torch.manual_seed(0)
    method = build_method("vsepp", small("vsepp"), vocabulary=vocabulary, feature_width=24).eval()
    split = embed(method, batches(tiny.shards, "validation", vocabulary, 3), device)
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


def test_validation_equals_the_evaluation_protocol(tiny):
    vocabulary = Vocabulary.load(tiny.vocabulary)
    torch.manual_seed(0)
    method = build_method("vsepp", small("vsepp"), vocabulary=vocabulary, feature_width=24).eval()
    batch = next(iter(batches(tiny.shards, "validation", vocabulary, 100))).to("cpu")
    with torch.no_grad():
        images, texts = method.encode_images(batch), method.encode_texts(batch)
    expected = recall(method.score, images, texts, batch.image_index)
    result = validate(
        method,
        ValidationBatches(Data(tiny.shards, vocabulary), 3, method.read_graph),
        torch.device("cpu"),
    )
    assert result["i2t_r1"] == pytest.approx(expected["i2t"]["r1"])
    assert result["rsum"] == pytest.approx(expected["rsum"])
