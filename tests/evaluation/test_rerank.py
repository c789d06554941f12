"""Re-ranking against a loop over eq. 14, and its stage on a few made-up images."""

from statistics import mean

import pyarrow.parquet as pq
import pytest
import torch
from hashed_files import edit
from tiny_data import make_data, write_table
from torch.nn.functional import normalize
from untrained_models import make_models

from manymatch.batch.scene_graph import SCHEMA
from manymatch.evaluation import ensemble as stage
from manymatch.evaluation.ensemble import best_beta, reranked
from manymatch.evaluation.protocols.recall import recall
from manymatch.methods.shared.method import Embeddings
from manymatch.model.embed import Embedded
from manymatch.similarities.vectors import cosine
from manymatch.util.errors import ConfigError, DataError

INDEX = torch.tensor([0, 0, 0, 1, 2, 2, 3])


def made(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(count, 5, generator=generator, dtype=torch.float64), dim=1)


IMAGES = Embeddings(made(3, 0)[:, None])
TEXTS = Embeddings(made(4, 1)[:, None], entities=made(7, 2), entity_caption=INDEX)


def score(images, texts):
    return cosine(images.vectors, texts.vectors)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_it_is_equation_14(beta):
    result = reranked(score, beta)(IMAGES, TEXTS)
    for i, v in enumerate(IMAGES.vectors[:, 0]):
        for j, t in enumerate(TEXTS.vectors[:, 0]):
            entities = [e for e, index in zip(TEXTS.entities, INDEX, strict=True) if index == j]
            lowest = min((v @ e).item() for e in entities)
            expected = beta * (v @ t).item() + (1 - beta) * lowest
            assert result[i, j].item() == pytest.approx(expected, abs=1e-9)


def test_every_beta_ranks_by_scores_that_are_computed_once():
    calls, gallery = [], (IMAGES, TEXTS, torch.tensor([0, 1, 2, 2]))

    def counted(images, texts):
        calls.append(1)
        return score(images, texts)

    rsums = stage.rsum_by_beta(counted, Embedded(gallery[0], gallery[1], [], [], gallery[2]))
    assert len(calls) == 2  # of the captions and of their entities
    assert rsums == {beta: recall(reranked(score, beta), *gallery)["rsum"] for beta in stage.BETAS}
    assert len(set(rsums.values())) > 1


@pytest.fixture
def models(tmp_path):
    return make_models(tmp_path)


def terms_of_equation_14(models, names, split):
    """Both terms of eq. 14 on the members' mean scores, pair by pair, in double precision: the
    score of the whole caption and that of its worst entity."""
    members = [models.embedded(name, split)[1] for name in names]
    images = [member.images.vectors[:, 0].double() for member in members]
    texts = [member.texts.vectors[:, 0].double() for member in members]
    entities = [member.texts.parts()["entities"].double() for member in members]
    index = members[0].texts.parts()["entity_caption"].tolist()
    whole, lowest = torch.empty(2, len(images[0]), len(texts[0]), dtype=torch.float64)
    for i in range(len(images[0])):
        for j in range(len(texts[0])):
            whole[i, j] = mean([(v[i] @ t[j]).item() for v, t in zip(images, texts, strict=True)])
            lowest[i, j] = min(
                mean([(v[i] @ e[k]).item() for v, e in zip(images, entities, strict=True)])
                for k, caption in enumerate(index)
                if caption == j
            )
    return whole, lowest


def test_an_ensemble_is_re_ranked_with_its_best_beta(models):
    names = [models.make("a", "cora"), models.make("narrow", "cora", seed=1, width=6)]
    values = models.rerank(*names)
    record = models.provenance("a+narrow")
    assert record["preset"] == "a+narrow+rerank" and len(record["members"]) == 2
    index = torch.arange(8).repeat_interleave(3)

    terms = {split: terms_of_equation_14(models, names, split) for split in ("validation", "test")}

    def results(split, beta):
        whole, lowest = terms[split]
        scores = (beta * whole + (1 - beta) * lowest).float()
        rows_of = Embeddings(torch.arange(8)[:, None, None]), Embeddings(torch.zeros(24, 1, 1))
        return recall(lambda images, texts: scores, *rows_of, index)

    rsums = {beta: results("validation", beta)["rsum"] for beta in stage.BETAS}
    assert record["rerank_beta"] == best_beta(rsums)
    assert values["rsum"] == pytest.approx(results("test", record["rerank_beta"])["rsum"], abs=0.01)


def test_a_member_without_entities_is_refused(models):
    models.make("a", "cora"), models.make("b")
    message = "re-ranking with 'b' needs the entities of captions.*'vsepp'"
    with pytest.raises(ConfigError, match=message):
        models.rerank("a", "b")
    assert not models.written("a+b").full.exists()


def test_members_of_other_scene_graphs_are_refused(models):
    other = models.out / "other"
    other.mkdir()
    data = make_data(other, width=6, variable=True)
    graphs = pq.read_table(data.graphs).to_pylist()
    for row in graphs:
        row["names"][0] = "thing"
    write_table(data.graphs, graphs, SCHEMA)
    models.shards["narrow"] = data.write_shards()
    edit(models.shards["narrow"] / "index.json", features="narrow")
    models.make("a", "cora"), models.make("narrow", "cora", width=6)
    with pytest.raises(DataError, match="not the same entities in the same order") as fault:
        models.rerank("a", "narrow")
    assert "\n" not in str(fault.value)
