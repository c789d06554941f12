"""The search for settings: equal budgets, the best of all trials, the same after a kill.

Most trainings are made up: their rsum is a function of their settings and their seed. Trials lie in
the memory where no process ends or begins.
"""

import functools
import json
import shutil

import pytest
from killing import kill_during
from made_searches import EPOCHS, LR, SPACE, made_up_training, write_space
from one_by_one import run_one_by_one

from manymatch.config.names import preset_path
from manymatch.config.preset import read_preset
from manymatch.experiments import workers
from manymatch.experiments.engine import perform
from manymatch.results.tuning import Tuning
from manymatch.shards.index import read_index
from manymatch.util.errors import ConfigError, DataError, ManyMatchError

pytest.importorskip("optuna")

import optuna

from manymatch.experiments.tuning.search import Search
from manymatch.experiments.tuning.trials import Budget, train_preset, tune

SIDE_BY_SIDE = workers.side_by_side
OPEN = "manymatch.experiments.tuning.search.open_study"
TRAIN = "manymatch.experiments.tuning.trials.train_preset"


@pytest.fixture(autouse=True)
def tried(monkeypatch):
    return run_one_by_one(monkeypatch)


@pytest.fixture
def stored(checkout, monkeypatch):
    write_space(checkout, SPACE)
    monkeypatch.setattr(TRAIN, made_up_training)
    return checkout


@pytest.fixture
def project(stored, monkeypatch):
    @functools.cache
    def study(path, key):
        path.parent.mkdir(parents=True, exist_ok=True)
        return optuna.create_study(direction="maximize")

    def opened(path, key, pruning):
        made = study(path, key)
        made.pruner = optuna.pruners.MedianPruner(pruning.after_trials, pruning.after_full_epochs)
        return made

    monkeypatch.setattr(OPEN, opened)
    return stored


def search(checkout, trials, *presets, **options):
    budget = Budget(trials, options.pop("hours", None))
    return tune(checkout.layout, "tiny", presets or ("vsepp",), budget, **options)


def outcome(trials):
    return [(trial.state, trial.settings, trial.rsum, trial.epochs) for trial in trials]


def rates(result):
    return [trial.settings[LR] for trial in result.trials]


def test_the_best_setting_becomes_a_preset_beside_the_results(project):
    layout = project.layout
    path = preset_path(layout.presets, "tiny", "vsepp")
    path.write_text(path.read_text() + "  devices: 2\n")  # a trial has one, whatever this says
    stated = path.read_bytes()
    (result,) = search(project, 4)
    assert Tuning.read(layout.tuning("tiny", "vsepp")) == result
    first, best = result.trials[0], result.trials[result.best]
    own = {LR: 0.01, "feature_dropout": 0.1, "objective": "triplet", "margin": 0.2}
    assert first.settings == own
    assert best.rsum == max(t.rsum or 0 for t in result.trials if t.state == "complete")
    tuned = read_preset(layout.tuned_preset("tiny", "vsepp"))
    assert tuned == Search.of(layout, "tiny", "vsepp").preset(best.settings)
    assert (tuned.training.optimizer.lr, tuned.training.devices) == (best.settings[LR], "auto")
    assert path.read_bytes() == stated


def test_the_best_settings_of_other_searches_are_early_trials(project):
    layout = project.layout
    layout.search_space("tiny").rename(layout.search_space("other"))
    write_space(project, {"like": "other"})
    search(project, 1)
    stated = preset_path(layout.presets, "tiny", "vsepp")
    stated.with_name("grid.yaml").write_bytes(stated.read_bytes())
    head = layout.tuned_preset("tiny", "vsepp").read_text().partition("method:")[0]
    for data, name, rate in (
        ("other", "vsepp", 0.02),
        ("tiny", "grid", 0.03),
        ("tiny", "vsepp", 0.04),
    ):
        path = layout.tuned_preset(data, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(head + read_preset(stated, {LR: rate}).to_yaml())
    write_space(project, {"like": "other", "starts_from": {"vsepp": "grid"}, "set": {EPOCHS: 2}})
    (result,) = search(project, 5)
    found = rates(result)
    assert {*found[:4]} == {0.01, 0.02, 0.03, 0.04} and found[4] not in found[:4]


def test_a_start_that_differs_by_a_value_outside_of_its_domain_alone_is_no_trial(project):
    layout = project.layout
    stated = preset_path(layout.presets, "tiny", "vsepp")
    path = stated.with_name("wide.yaml")
    path.write_text(read_preset(stated, {"model.margin": 0.4}).to_yaml())
    write_space(project, SPACE | {"starts_from": {"vsepp": "wide"}})
    (result,) = search(project, 3)
    assert rates(result).count(0.01) == 1


def test_the_best_trials_are_repeated_with_other_seeds_and_the_mean_decides(project, tried):
    (single,) = search(project, 4)
    repeats = {"trials": 2, "seeds": 3, "set": {EPOCHS: 5}}
    write_space(project, SPACE | {"repeats": repeats})
    tried.clear()
    # The results are written before the repeats too.
    kill_during(lambda: search(project, 4), "manymatch.experiments.engine.Run.finish", 2)
    written = Tuning.read(project.layout.tuning("tiny", "vsepp"))
    assert outcome(written.trials) == outcome(single.trials)
    (result,) = search(project, 4)
    ranked = sorted(range(4), key=lambda n: -single.trials[n].mean)
    assert tried == [f"vsepp, trial {n + 1}, seed {seed}" for n in ranked[:2] for seed in (0, 1, 2)]
    assert outcome(result.trials) == outcome(single.trials)  # no trial is done anew
    assert [len(result.trials[n].repeats) for n in ranked] == [3, 3, 0, 0]
    means = {n: sum(result.trials[n].repeats) / 3 for n in ranked[:2]}
    assert result.best == max(means, key=lambda n: means[n])
    assert result.rsum == pytest.approx(means[result.best])
    tuned = read_preset(project.layout.tuned_preset("tiny", "vsepp"))
    assert (tuned.seed, tuned.training.epochs) == (0, 5)


def test_every_preset_has_the_same_budget_and_trials_alternate(project, tried):
    results = search(project, 2, "vsepp", "cora")
    assert tried == ["vsepp", "cora"] * 2
    assert [len(result.trials) for result in results] == [2, 2]
    tried.clear()
    search(project, 3, "vsepp", "cora")
    assert tried == ["vsepp", "cora"]
    (spent,) = search(project, 9, "vsepp", hours=1e-12)
    assert len(spent.trials) == 3
    with pytest.raises(ConfigError, match="--hours: expected a number"):
        search(project, 9, "vsepp", hours=float("inf"))


def test_bad_trials_end_early_and_those_that_cannot_be_trained_count(project):
    wide = {"low": 1e-30, "high": 1e30, "log": True}
    write_space(project, {**SPACE, "shared": {LR: wide}, "methods": {"vsepp": {}}})
    (result,) = search(project, 12)
    for trial in result.trials:
        rate = trial.settings[LR]
        if rate > 1:
            assert trial.state == ("pruned" if rate > 1e10 else "diverged") and trial.rsum is None
    states = [trial.state for trial in result.trials]
    assert {"pruned", "diverged", "complete"} == set(states)
    assert any(
        trial.epochs < 3 for trial in result.trials if trial.state == "pruned" and trial.rsum
    )
    assert result.trials[result.best].state == "complete"


def test_trials_are_compared_by_their_epochs_at_the_full_rate(project):
    write_space(project, SPACE | {"set": {EPOCHS: 3, "training.schedule.warmup_epochs": 1.5}})
    (result,) = search(project, 1)
    assert result.trials[0].epochs == 3
    with Search.of(project.layout, "tiny", "vsepp").study() as study:
        assert study.trials[0].intermediate_values.keys() == {0}


KILLS = (
    ("optuna.Trial.report", 5),  # in the middle of training
    ("optuna.Study.tell", 2),  # before the database has the result
)


def test_a_search_that_was_killed_ends_with_all_its_trials(stored):
    (undisturbed,) = search(stored, 3)
    for moment in KILLS:
        shutil.rmtree(stored.layout.experiment_runs("tuning"))
        stored.layout.tuned_preset("tiny", "vsepp").unlink()
        kill_during(lambda: search(stored, 3), *moment)
        (result,) = search(stored, 3)
        assert outcome(result.trials)[0] == outcome(undisturbed.trials)[0]
        assert [len(one.trials) for one in (result, undisturbed)] == [3, 3]


def test_a_search_whose_trials_all_failed_begins_anew(project, monkeypatch, tried):
    def full(*arguments, **options):
        raise DataError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(TRAIN, full)
        with pytest.raises(ManyMatchError, match="2 of 2 runs failed"):
            search(project, 2)
    (result,) = search(project, 2)
    own = read_preset(preset_path(project.layout.presets, "tiny", "vsepp"))
    assert result.trials[0].settings[LR] == own.training.optimizer.lr


def test_an_experiment_on_the_best_settings_uses_the_model_of_the_search(project, monkeypatch):
    """With real trainings, which do not read the test split."""
    layout = project.layout
    monkeypatch.setattr(TRAIN, train_preset)
    write_space(project, SPACE | {"repeats": {"trials": 1, "seeds": 2}})
    shards = layout.shards("tiny", "grid")
    test = [shards / name for name in read_index(shards).split("test").shards]
    for path in test:
        path.rename(path.with_suffix(".away"))
    (result,) = search(project, 3)
    for path in test:
        path.with_suffix(".away").rename(path)
    models = [path.parent for path in layout.experiment_runs("tuning").glob("*/model")]
    assert len(models) == 2  # of the best trial and its repeat
    shutil.copy(layout.tuned_preset("tiny", "vsepp"), layout.presets / "tiny" / "vsepp.yaml")
    plan = project.plan(points={"tuned": {}}, seeds=[0, 1, 2])

    def runs():
        written = perform(project.experiment(plan))
        (point,) = json.loads(written.read_text())["points"]
        return point["runs"]

    first = runs()
    assert [run["seconds"] is None for run in first] == [True, True, False]
    rsums = [run["validation_rsum"] for run in first[:2]]
    assert rsums == pytest.approx(result.trials[result.best].repeats, abs=0.01)
    for kind in ("tuning", "presets"):
        shutil.rmtree(layout.experiment_runs(kind))
    alone = runs()
    assert [run["metrics"] for run in alone] == [run["metrics"] for run in first]
    assert all(run["seconds"] for run in alone)


@pytest.mark.slow
def test_worker_processes_share_the_trials(stored, monkeypatch):
    monkeypatch.setattr(workers, "side_by_side", SIDE_BY_SIDE)
    (result,) = search(stored, 4, jobs=2)
    drawn = [trial.settings for trial in result.trials]
    assert len(drawn) == 4 and all(drawn.count(settings) == 1 for settings in drawn)
