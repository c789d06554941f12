"""Several models together rank as the mean of their whole score matrices does."""

import pytest
import torch
from hashed_files import edit
from made_scores import naive_ranks
from tiny_data import make_data
from untrained_models import make_models

from manymatch.evaluation.ranking.metrics import recall_metrics
from manymatch.methods.vsepp import VSEPP
from manymatch.model import scores as blocks
from manymatch.results.metrics import Metrics, Provenance
from manymatch.util.errors import ConfigError, DataError


@pytest.fixture
def models(tmp_path):
    return make_models(tmp_path)


INDEX = torch.arange(8).repeat_interleave(3)


@pytest.mark.parametrize("members", [("a", "b"), ("cora", "b", "narrow")])
def test_it_ranks_by_the_mean_of_the_whole_matrices(models, monkeypatch, members):
    models.make("a"), models.make("b", seed=1)
    models.make("narrow", seed=3, width=6), models.make("cora", "cora")
    monkeypatch.setattr(blocks, "IMAGES_PER_BLOCK", 3)
    monkeypatch.setattr(blocks, "CAPTIONS_PER_BLOCK", 7)
    result = models.ensemble(*members)
    mean = sum(models.scores(name) for name in members) / len(members)
    i2t, t2i = naive_ranks(mean, INDEX.tolist())
    for way, expected in (("i2t", i2t), ("t2i", t2i)):
        numbers = recall_metrics(torch.tensor(expected))
        assert result[way] == pytest.approx(numbers, abs=0.006)
    assert {"map_at_r", "others"} < set(result["multi"]["t2i"])
    Metrics.model_validate(result)
    record = Provenance.model_validate(models.provenance("+".join(members)))
    assert [member.preset for member in record.members] == [*members]
    assert record.seed == "+".join({"b": "1", "narrow": "3"}.get(name, "0") for name in members)
    assert shown_scores(models, "+".join(members)) == pytest.approx(
        mean.sort(1, descending=True).values[:, :5].flatten().tolist(), abs=1e-6
    )


def shown_scores(models, name):
    lines = (models.written(name).run / "i2t.trec").read_text().splitlines()
    return [float(line.split()[4]) for line in lines]


def test_captions_rank_by_their_own_score_where_a_member_has_one(models, monkeypatch):
    models.make("a"), models.make("b", seed=1)
    alike = models.ensemble("a", "b")

    turned = lambda self: lambda images, texts: -VSEPP.score(self, images, texts)  # noqa: E731
    monkeypatch.setattr(VSEPP, "t2i_score", property(turned))
    result = models.ensemble("a", "b")
    assert result["i2t"] == alike["i2t"] and result["multi"]["i2t"] == alike["multi"]["i2t"]
    _, t2i = naive_ranks(-(models.scores("a") + models.scores("b")) / 2, INDEX.tolist())
    assert result["t2i"] == pytest.approx(recall_metrics(torch.tensor(t2i)), abs=0.006)


def test_one_model_and_members_of_other_galleries_are_refused(models):
    models.make("a"), models.make("narrow", width=6)
    for names, words in ((["a"], "two trained models or more"), ("aa", "'a' is named twice")):
        with pytest.raises(ConfigError, match=words):
            models.ensemble(*names)
    other = models.out / "other"
    other.mkdir()
    data = make_data(other, {"train": 4, "validation": 4, "test": 7}, width=6)
    models.shards["narrow"] = data.write_shards()
    edit(data.shards / "index.json", features="narrow")
    with pytest.raises(DataError, match="not the same images in the same order") as fault:
        models.ensemble("a", "narrow")
    assert "\n" not in str(fault.value)
    assert not models.written("a+narrow").full.exists()
