"""Which stages each flow runs."""

import logging
from pathlib import Path

import pytest
import yaml
from prefect.states import Completed

from manymatch.util.errors import ConfigError
from pipelines import flows, parts, sharing
from pipelines.graph import Graph, Stage

RUN = flows._run
METHODS = ("vsepp", "swamp", "maxmatch", "cora")


@pytest.fixture(autouse=True)
def names_only(root, graph, monkeypatch):
    """A flow returns the names of its stages instead of running them."""
    monkeypatch.chdir(root)
    monkeypatch.setattr(flows, "_run", lambda choose, *_, **__: [s.name for s in choose(graph)])


def test_a_flow_runs_what_leads_to_its_end_and_nothing_else(graph):
    names = flows.train.fn("cora")
    assert names[:2] == ["code", "download@scenes"] and len(names) == 8
    assert names[-2:] == ["train@scenes-cora", "evaluate@scenes-cora"]
    for dataset in ("scenes", "all"):
        names = flows.prepare.fn(dataset)
        assert names[-1] == "shards@scenes-lite0" and len(names) == 6
        names = flows.evaluate.fn(dataset)
        for method in METHODS:
            assert {f"train@scenes-{method}", f"evaluate@scenes-{method}"} <= set(names)
        assert "report" not in names
    assert flows.report.fn() == ["code", "report"]
    assert flows.reproduce.fn() == [stage.name for stage in graph.stages]


def test_index_ends_with_the_index_of_its_model(tmp_path, root, graph, monkeypatch):
    with pytest.raises(ConfigError, match="no 'mine'"):
        flows.index.fn("mine")
    changed = yaml.safe_load((root / "params.yaml").read_text())
    changed["indexes"] = {"mine": {"source": "data/raw/scenes/images", "model": "scenes/cora"}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(changed))
    needs = ("code", "download@scenes", "train@scenes-cora")
    stage = Stage("index@mine", "", needs, (Path("data/indexes/mine"),))
    other = Stage("index@other", "", (), (Path("data/indexes/other"),))
    indexed = Graph(tmp_path, (*graph.stages, stage, other))
    monkeypatch.setattr(flows, "_run", lambda choose, *_, **__: [s.name for s in choose(indexed)])
    names = flows.index.fn("mine")
    assert names[-2:] == ["train@scenes-cora", "index@mine"] and "index@other" not in names
    assert flows.index.fn("all")[-1] == "index@other"
    with pytest.raises(ConfigError, match="did you mean 'mine'"):
        flows.index.fn("mime")


def test_shards_at_a_url_are_divided(monkeypatch):
    made = []

    def dividing(count, cluster, chosen):
        return lambda stage, _: made.append((count, cluster, stage.command, chosen(stage)))

    monkeypatch.setattr(parts, "dividing", dividing)
    monkeypatch.setattr(flows, "progress", logging.getLogger)
    assert flows.shards.fn("birds", "lite0", "s3://a b", 3, "tcp://head:1").is_completed()
    assert made == [(3, "tcp://head:1", "manymatch shards birds lite0 --to 's3://a b'", True)]


def test_an_unknown_data_set_names_the_nearest():
    for flow in (flows.prepare, flows.evaluate):
        with pytest.raises(ConfigError, match=r"no 'scens'; did you mean 'scenes'\?"):
            flow.fn("scens")


@pytest.mark.parametrize(
    ("share", "cluster", "overrides", "message"),
    [
        ("yes", "", "", "MANYMATCH_SHARE=yes"),
        ("0", "nonsense:abc", "", "cluster=nonsense:abc"),
        ("0", "tcp://127.0.0.1:1", "seed=1", "overrides: the workers of a cluster"),
    ],
)
def test_what_every_stage_needs_is_looked_at_before_anything_is_written(
    monkeypatch, share, cluster, overrides, message
):
    monkeypatch.setenv(sharing.SHARE, share)
    monkeypatch.setattr(flows, "_run", RUN)
    monkeypatch.setattr(flows, "progress", logging.getLogger)
    monkeypatch.setattr(flows, "_settled", None)
    ended = flows.prepare.fn("scenes", overrides, cluster=cluster)
    assert ended.is_failed() and ended.message.startswith(message)


@pytest.mark.parametrize("shared", [True, False])
def test_a_shared_stage_is_pulled_before_it_runs(monkeypatch, shared):
    called = []

    def run(name, environment, pushed, **_):
        assert pushed is shared
        called.append(f"run {name}")
        return Completed()

    monkeypatch.setattr(sharing, "pull", lambda name: called.append(f"pull {name}"))
    monkeypatch.setattr(flows, "task_of", lambda kind: run)
    flows._run_stages([Stage("report", "", (), ())], {}, None, shared, print)
    assert called == (["pull report"] if shared else []) + ["run report"]
