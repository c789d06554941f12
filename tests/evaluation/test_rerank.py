"""Re-ranking against a loop over eq. 14, and its stage on a few made-up images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tiny_data import TinyData, make_data
from torch import Tensor
from torch.nn.functional import normalize
from untrained import save_untrained

from manymatch.datasets.base import RELEVANCE
from manymatch.errors import ConfigError
from manymatch.evaluation import rerank as stage
from manymatch.evaluation.blocks import rows
from manymatch.evaluation.rerank import best_beta, reranked
from manymatch.methods.base import Embeddings
from manymatch.reporting.results import Metrics, Provenance, Samples
from manymatch.similarities.cosine import cosine

OWNER = torch.tensor([0, 0, 0, 1, 2, 2, 3])


def made(count: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(count, 5, generator=generator, dtype=torch.float64), dim=1)


IMAGES = Embeddings(made(3, 0)[:, None])
TEXTS = Embeddings(made(4, 1)[:, None], entities=made(7, 2), entity_owner=OWNER)


def score(images: Embeddings, texts: Embeddings) -> Tensor:
    return cosine(images.vectors, texts.vectors)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_it_is_equation_14(beta: float) -> None:
    found = reranked(score, beta)(IMAGES, TEXTS)
    for i, v in enumerate(IMAGES.vectors[:, 0]):
        for j, t in enumerate(TEXTS.vectors[:, 0]):
            entities = [e for e, owner in zip(TEXTS.entities, OWNER, strict=True) if owner == j]
            lowest = min((v @ e).item() for e in entities)
            expected = beta * (v @ t).item() + (1 - beta) * lowest
            assert found[i, j].item() == pytest.approx(expected, abs=1e-9)


def test_any_block_of_it_is_the_same() -> None:
    mixed = reranked(score, 0.4)
    whole = mixed(IMAGES, TEXTS)
    block = mixed(rows(IMAGES, slice(1, 3)), rows(TEXTS, slice(1, 4)))
    torch.testing.assert_close(block, whole[1:3, 1:4])


def test_the_best_beta_is_of_equals_the_largest() -> None:
    assert best_beta({0.0: 1.0, 0.5: 7.0, 0.75: 7.0, 1.0: 3.0}) == 0.75


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> TinyData:
    made_data = make_data(tmp_path_factory.mktemp("tiny"), width=12)
    made_data.write_shards()
    return made_data


class _Stage:
    def __init__(self, folder: Path, data: TinyData) -> None:
        self.folder, self.data = folder, data
        schema = RELEVANCE.with_metadata({"complete": "true"})
        pq.write_table(pa.Table.from_pylist([], schema=schema), folder / "relevance.parquet")

    def __call__(self, name: str, settings: dict[str, Any] | None = None) -> dict[str, Any]:
        out = self.folder
        model = save_untrained(out / "made", self.data, name, settings)
        places = ("relevance.parquet", "metrics.json", "provenance.json", "run")
        stage.rerank(model, self.data.shards, *(out / place for place in places), samples=3)
        return json.loads((out / "metrics.json").read_text())


@pytest.fixture
def run(tmp_path: Path, data: TinyData) -> _Stage:
    return _Stage(tmp_path, data)


def test_the_stage_writes_a_result_of_its_own(run: _Stage) -> None:
    Metrics.model_validate(run("cora"))
    record = Provenance.model_validate_json((run.folder / "provenance.json").read_text())
    assert (record.preset, record.method, record.split) == ("made+rerank", "cora", "test")
    assert record.rerank_beta in stage.BETAS
    Samples.model_validate_json((run.folder / "run" / "samples.json").read_text())


def test_two_runs_are_equal(run: _Stage) -> None:
    files = ("metrics.json", "run/i2t.trec", "run/t2i.trec")
    found = []
    for _ in range(2):
        run("cora")
        found.append([(run.folder / name).read_bytes() for name in files])
    assert found[0] == found[1]


def test_a_method_without_entities_is_refused(run: _Stage) -> None:
    with pytest.raises(ConfigError, match="entities of captions, which method 'vsepp' does not"):
        run("vsepp")
    assert not (run.folder / "metrics.json").exists()
