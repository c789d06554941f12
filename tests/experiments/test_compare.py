"""`init --compare`: three methods, three seeds, the validation split alone."""

from types import SimpleNamespace

import pytest

from manymatch.cli import own_presets as compare
from manymatch.results.experiments import Experiment
from manymatch.shards.index import read_index
from manymatch.util.errors import ManyMatchError


@pytest.fixture
def commands(checkout, monkeypatch):
    """The commands that run DVC, which all succeed."""
    called = []
    monkeypatch.chdir(checkout.layout.root)
    monkeypatch.setattr(compare, "_FEWEST_EPOCHS", 1)

    def run(command):
        called.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(compare, "subprocess", SimpleNamespace(run=run))
    return called


def test_three_methods_are_compared_without_the_test_split(
    commands, checkout, worked, capfd, monkeypatch
):
    folder = checkout.layout.presets / "tiny"
    text = (folder / "vsepp.yaml").read_text().replace("images_per_batch: 8", "images_per_batch: 4")
    for name in ("vsepp", "pcme", "dive"):
        (folder / f"{name}.yaml").write_text(text)
    shards = checkout.layout.shards("tiny", "grid")
    for name in read_index(shards).split("test").shards:
        (shards / name).unlink()
    best = compare.best_of("tiny", ["vsepp", "pcme", "dive", "cora"], 4, "lite0")
    assert len(worked) == 3 and len(Experiment.paths(checkout.layout.reports)) == 1
    assert "From 160 training pictures on" in capfd.readouterr().err
    monkeypatch.setattr(compare, "_FEWEST_BATCHES", 1)
    assert compare.best_of("tiny", ["vsepp", "pcme", "dive", "cora"], 4, "lite0") == best
    # Equal presets run once, and the whole of the data is a run of both tables.
    assert commands[0][-1] == "shards@tiny-lite0" and len(worked) == 3 * 3
    curve, result = map(Experiment.read, Experiment.paths(checkout.layout.reports))
    # 24 pictures are 6 batches of 4, half of them 3, and a quarter 1: six steps each.
    assert [point.settings["training.epochs"] for point in curve.points] == [6, 2, 1]
    whole = next(point for point in result.points if point.label == best)
    assert [run.metrics for run in curve.points[2].runs] == [run.metrics for run in whole.runs]
    assert (result.split, result.seeds) == ("validation", [0, 1, 2])
    assert best in ("vsepp", "pcme", "dive")
    said = capfd.readouterr()
    assert "95% interval" in said.out and f"{best} has the highest rsum" in said.err
    assert f"{best} on parts of the captions" in said.err
    failed = SimpleNamespace(returncode=1)
    monkeypatch.setattr(compare, "subprocess", SimpleNamespace(run=lambda _: failed))
    with pytest.raises(ManyMatchError, match="'dvc repro shards@tiny-lite0' failed"):
        compare.best_of("tiny", ["vsepp", "pcme", "dive"], 4, "lite0")
