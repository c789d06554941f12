"""The search for settings: equal budgets, the validation split alone, the same after a kill."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from killing import kill_during
from one_by_one import run_one_by_one
from tiny_checkout import Checkout

from manymatch.config.layout import Layout
from manymatch.config.preset import preset_path, read_preset
from manymatch.evaluation.ranking.ranks import checked
from manymatch.experiments import workers
from manymatch.experiments.engine import perform
from manymatch.results.tuning import TunedTrial, Tuning
from manymatch.shards.index import read_index
from manymatch.util.errors import ConfigError, DataError

pytest.importorskip("optuna")

from manymatch.experiments.tuning.search import Search, best_trials, read_space
from manymatch.experiments.tuning.tune import Budget, tune

ROOT = Path(__file__).parents[3]
SIDE_BY_SIDE = workers.side_by_side
LR = "training.optimizer.lr"
SPACE: dict[str, Any] = {
    "set": {"training.epochs": 3, "training.patience": 2},
    "pruning": {"after_trials": 2, "after_full_epochs": 1},
    "domains": {"dropout": {"low": 0.0, "high": 0.5}},
    "shared": {LR: {"low": 0.0001, "high": 0.1, "log": True}},
    "methods": {
        "vsepp": {
            "feature_dropout": "dropout",
            "loss": {
                "options": {
                    "InfoNCE": {"objective": "info_nce", "temperature": {"low": 0.01, "high": 1.0}},
                    "hardest": {"objective": "triplet", "margin": {"low": 0.1, "high": 0.3}},
                }
            },
        },
        "cora": {},
    },
}


@pytest.fixture(autouse=True)
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return run_one_by_one(monkeypatch)


@pytest.fixture
def project(checkout: Checkout) -> Checkout:
    """A checkout with a space, and without the test split."""
    write_space(checkout, SPACE)
    layout = checkout.layout
    shards = layout.shards("tiny", "grid")
    for name in read_index(shards).split("test").shards:
        (shards / name).unlink()
    layout.relevance("tiny").unlink()
    return checkout


def write_space(checkout: Checkout, value: dict[str, Any]) -> None:
    path = checkout.layout.search_space("tiny")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value))


def search(checkout: Checkout, trials: int, *presets: str, **options: Any) -> list[Tuning]:
    budget = Budget(trials, options.pop("hours", None))
    return tune(checkout.layout, "tiny", presets or ("vsepp",), budget, **options)


def outcome(trials: list[TunedTrial]) -> list[tuple[Any, ...]]:
    return [(trial.state, trial.settings, trial.rsum, trial.epochs) for trial in trials]


def test_neither_tuning_nor_early_stopping_reads_the_test_split(project: Checkout) -> None:
    (result,) = search(project, 3)
    assert len(result.trials) == 3 and result.set["training.patience"] == 2


def test_the_best_setting_becomes_a_preset_beside_the_handwritten_one(project: Checkout) -> None:
    layout = project.layout
    stated = preset_path(layout.presets, "tiny", "vsepp").read_bytes()
    (result,) = search(project, 4)
    assert Tuning.read(layout.tuning("tiny", "vsepp")) == result
    first, best = result.trials[0], result.trials[result.best]
    assert first.settings == {
        LR: 0.01,
        "feature_dropout": 0.1,
        "objective": "triplet",
        "margin": 0.2,
    }
    assert best.rsum == max(t.rsum or 0 for t in result.trials if t.state == "complete")
    tuned = read_preset(layout.tuned_preset("tiny", "vsepp"))
    assert tuned == Search.of(layout, "tiny", "vsepp").preset(best.settings)
    assert tuned.training.optimizer.lr == best.settings[LR] and tuned.training.patience == 2
    assert preset_path(layout.presets, "tiny", "vsepp").read_bytes() == stated
    search(project, 4)  # the command replaces what it wrote
    layout.tuned_preset("tiny", "vsepp").write_bytes(stated)
    with pytest.raises(ConfigError, match=r"vsepp_tuned\.yaml: .* Rename"):
        search(project, 4)


def test_the_best_settings_of_a_like_data_set_and_of_an_earlier_search_come_early(
    project: Checkout,
) -> None:
    layout = project.layout
    layout.search_space("tiny").rename(layout.search_space("other"))
    write_space(project, {"like": "other"})
    (alone,) = search(project, 1)
    best = read_preset(preset_path(layout.presets, "tiny", "vsepp"), {LR: 0.02})
    layout.tuned_preset("other", "vsepp").parent.mkdir()
    layout.tuned_preset("other", "vsepp").write_text(best.to_yaml())
    earlier = read_preset(layout.tuned_preset("tiny", "vsepp"), {LR: 0.03})
    head = layout.tuned_preset("tiny", "vsepp").read_text().partition("method:")[0]
    layout.tuned_preset("tiny", "vsepp").write_text(head + earlier.to_yaml())
    write_space(project, {"like": "other", "set": {"training.epochs": 2}})
    # A killed trial comes before those that wait.
    kill_during(lambda: search(project, 4), "manymatch.experiments.run_folder.Run.finish", 1)
    (result,) = search(project, 4)
    first = alone.trials[0].settings
    rates = [first | {LR: rate} for rate in (first[LR], 0.02, 0.03)]
    assert [trial.settings for trial in result.trials[:3]] == rates
    assert result.trials[3].settings[LR] not in (0.01, 0.02, 0.03)


def test_the_best_trials_are_repeated_with_other_seeds_and_the_mean_decides(
    project: Checkout, tried: list[str]
) -> None:
    (single,) = search(project, 4)
    write_space(project, SPACE | {"repeats": {"trials": 2, "seeds": 3}})
    tried.clear()
    (result,) = search(project, 4)
    ranked = sorted(range(4), key=lambda n: -single.trials[n].mean)
    assert tried == [f"vsepp, trial {n + 1}, seed {seed}" for n in ranked[:2] for seed in (0, 1, 2)]
    assert outcome(result.trials) == outcome(single.trials)  # no trial is done anew
    repeats = [trial.repeats for trial in result.trials]
    assert [len(repeats[n]) for n in ranked] == [3, 3, 0, 0]
    assert [repeats[n][0] for n in ranked[:2]] == [single.trials[n].rsum for n in ranked[:2]]
    means = {n: sum(repeats[n]) / 3 for n in ranked[:2]}
    assert result.best == max(means, key=lambda n: means[n])
    assert result.rsum == pytest.approx(means[result.best])
    layout = project.layout
    assert read_preset(layout.tuned_preset("tiny", "vsepp")).seed == 0
    assert Tuning.read(layout.tuning("tiny", "vsepp")) == result
    # A repeat is the training with this seed alone.
    again = Search.of(layout, "tiny", "vsepp").preset(result.trials[result.best].settings)
    preset = preset_path(layout.presets, "tiny", "vsepp")
    preset.write_text(again.model_copy(update={"seed": 2}).to_yaml())
    (other,) = search(project, 1)
    assert other.trials[0].rsum == repeats[result.best][2]


def test_repeats_may_train_longer_than_the_trials(project: Checkout, tried: list[str]) -> None:
    (short,) = search(project, 3)
    epochs = "training.epochs"
    longer = {"trials": 2, "seeds": 2, "set": {epochs: 5, "training.patience": None}}
    write_space(project, SPACE | {"repeats": longer})
    tried.clear()
    (result,) = search(project, 3)
    assert len(tried) == 4 and outcome(result.trials) == outcome(short.trials)
    layout = project.layout
    tuned = read_preset(layout.tuned_preset("tiny", "vsepp"))
    assert tuned.training.epochs == 5
    # A repeat is a training with the settings of the tuned preset.
    write_space(project, SPACE | {"set": longer["set"]})
    preset = preset_path(layout.presets, "tiny", "vsepp")
    preset.write_text(tuned.to_yaml())
    (other,) = search(project, 1)
    assert other.trials[0].rsum == result.trials[result.best].repeats[0]
    assert result.rsum == pytest.approx(sum(result.trials[result.best].repeats) / 2)
    write_space(project, SPACE | {"repeats": longer | {"set": {"training.epoch": 5}}})
    with pytest.raises(ConfigError, match=r"repeats\.set: .*epoch"):
        search(project, 1)


def test_every_preset_has_the_same_budget_and_trials_alternate(
    project: Checkout, tried: list[str]
) -> None:
    results = search(project, 3, "vsepp", "cora")
    assert tried == ["vsepp", "cora"] * 3
    assert [len(result.trials) for result in results] == [3, 3]
    tried.clear()
    search(project, 4, "vsepp", "cora")
    assert tried == ["vsepp", "cora"]
    (spent,) = search(project, 9, "vsepp", hours=1e-9)
    assert len(spent.trials) == 4
    with pytest.raises(ConfigError, match="--hours: expected a number"):
        search(project, 9, "vsepp", hours=float("inf"))


def test_a_bad_trial_ends_early_and_a_diverged_one_counts(project: Checkout) -> None:
    rates = {"low": 1e-30, "high": 1e30, "log": True}
    write_space(project, {**SPACE, "shared": {LR: rates}, "methods": {"vsepp": {}}})
    (result,) = search(project, 9)
    states = [trial.state for trial in result.trials]
    assert states.count("pruned") > 0 and states.count("diverged") > 0
    pruned = [trial for trial in result.trials if trial.state == "pruned"]
    assert min(trial.epochs for trial in pruned) < 3
    assert result.trials[result.best].state == "complete"


def test_trials_are_compared_by_their_epochs_at_the_full_rate(project: Checkout) -> None:
    warmup = {"training.epochs": 3, "training.schedule.warmup_epochs": 1.5}
    write_space(project, SPACE | {"set": warmup})
    (result,) = search(project, 1)
    assert result.trials[0].epochs == 3
    (trial,) = Search.of(project.layout, "tiny", "vsepp").study().trials
    assert trial.intermediate_values.keys() == {0}


@pytest.fixture(scope="module")
def undisturbed(_made: Path, tmp_path_factory: pytest.TempPathFactory) -> list[TunedTrial]:
    """The trials of the search that the kills interrupt."""
    folder = tmp_path_factory.mktemp("undisturbed") / "checkout"
    checkout = Checkout(Layout(Path(shutil.copytree(_made, folder))))
    write_space(checkout, SPACE)
    with pytest.MonkeyPatch.context() as patch:
        run_one_by_one(patch)
        (result,) = search(checkout, 3)
    return result.trials


KILLS = {
    "before anything is known": ("optuna.Study.ask", 2),
    "while the settings are drawn": ("optuna.Trial.suggest_float", 5),
    "in the middle of training": ("manymatch.training.loop.validate", 5),
    "after training": ("manymatch.experiments.run_folder.Run.finish", 2),
    "before the database has the result": ("optuna.Study.tell", 2),
}


@pytest.mark.parametrize("moment", KILLS)
def test_a_search_that_was_killed_ends_as_one_that_was_not(
    project: Checkout, undisturbed: list[TunedTrial], moment: str
) -> None:
    kill_during(lambda: search(project, 3), *KILLS[moment])
    (result,) = search(project, 3)
    assert outcome(result.trials) == outcome(undisturbed)


def test_scores_that_are_not_finite_make_a_trial_diverge(
    project: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated: list[int] = []

    def second_fails(scores: Any) -> Any:
        validated.append(1)
        return checked(scores * float("nan") if len(validated) == 2 else scores)

    monkeypatch.setattr("manymatch.evaluation.ranking.ranks.checked", second_fails)
    (result,) = search(project, 2)
    assert [trial.state for trial in result.trials] == ["diverged", "complete"]


@pytest.mark.parametrize(
    "fault",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"),
    ],
)
def test_a_trial_that_needs_too_much_memory_counts(
    fault: Exception, project: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []

    def first_fails(*args: Any) -> None:
        steps.append(1)
        if len(steps) == 1:
            raise fault

    monkeypatch.setattr("manymatch.training.loop.Losses.forward", first_fails)
    (result,) = search(project, 2)
    assert [trial.state for trial in result.trials] == ["pruned", "complete"]


def test_a_space_like_another_says_which_group_is_faulty(tmp_path: Path) -> None:
    base, space = tmp_path / "base.yaml", tmp_path / "space.yaml"
    base.write_text(yaml.safe_dump(SPACE))
    for text, words in (("shared:", "shared"), ("methods: [vsepp]", "methods"), ("set: 1", "set")):
        space.write_text(f"like: base\n{text}\n")
        with pytest.raises(ConfigError, match=rf"space\.yaml: {words}"):
            read_space(space)
    space.write_text("like: base\n")
    base.write_text(yaml.safe_dump(SPACE | {"starts_from": {"other": "vsepp"}}))
    assert not read_space(space).starts_from  # these are presets of the other data set
    base.write_text(yaml.safe_dump(SPACE | {"like": "other"}))
    with pytest.raises(ConfigError, match="has a 'like' itself"):
        read_space(space)


def test_a_search_starts_from_the_best_settings_of_another_preset(project: Checkout) -> None:
    layout = project.layout
    stated = preset_path(layout.presets, "tiny", "vsepp")
    write_space(project, SPACE | {"starts_from": {"vsep": "vsepp"}})
    with pytest.raises(ConfigError, match=r"tiny\.yaml: starts_from: .*did you mean 'vsepp'"):
        search(project, 1)
    write_space(project, SPACE | {"starts_from": {"vsepp": "grid"}})
    with pytest.raises(ConfigError, match=r"tiny\.yaml: starts_from: .*grid\.yaml"):
        search(project, 1)
    stated.with_name("grid.yaml").write_bytes(stated.read_bytes())
    search(project, 1)  # without a search of the other preset, nothing is taken over
    layout.tuned_preset("tiny", "grid").write_text(read_preset(stated, {LR: 0.02}).to_yaml())
    write_space(project, SPACE | {"starts_from": {"vsepp": "grid"}, "set": {"training.epochs": 1}})
    (result,) = search(project, 2)
    assert [trial.settings[LR] for trial in result.trials] == [0.01, 0.02]


def test_settings_that_an_earlier_search_chose_too_are_tried_once(project: Checkout) -> None:
    search(project, 1)  # the tuned preset is the preset
    write_space(project, SPACE | {"set": {"training.epochs": 1}})
    (result,) = search(project, 2)
    assert result.trials[0].settings[LR] == 0.01 != result.trials[1].settings[LR]
    # If a later trial draws the settings of an earlier one, only one of both is repeated.
    write_space(project, SPACE | {"repeats": {"trials": 2, "seeds": 2}})
    one = Search.of(project.layout, "tiny", "vsepp")
    assert best_trials(one, [*result.trials, *result.trials]) == best_trials(one, result.trials)


def test_a_trial_has_one_device_whatever_the_preset_asks_for(project: Checkout) -> None:
    path = preset_path(project.layout.presets, "tiny", "vsepp")
    path.write_text(path.read_text() + "  devices: 2\n")
    assert read_preset(path).training.devices == 2
    assert Search.of(project.layout, "tiny", "vsepp").preset({}).training.devices == "auto"


def test_other_data_or_another_space_is_another_search(project: Checkout) -> None:
    search(project, 2)
    write_space(project, SPACE | {"set": {"training.epochs": 1}})
    (result,) = search(project, 2)
    assert [trial.epochs for trial in result.trials] == [1, 1]


def test_another_machine_extends_the_search_of_the_file_of_results(
    project: Checkout, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = project.layout
    write_space(project, SPACE | {"repeats": {"trials": 1, "seeds": 2}})
    (here,) = search(project, 3)
    shutil.rmtree(layout.experiment_runs("tuning"))
    index = layout.shards("tiny", "grid") / "SEAL.json"
    index.write_bytes(index.read_bytes() + b"\n")  # as if the features had other last bits
    with monkeypatch.context() as patch:
        patch.setattr("manymatch.experiments.tuning.trial.train", None)
        assert search(project, 3, extend=True) == [here]
    (more,) = search(project, 4, extend=True)
    assert outcome(more.trials[:3]) == outcome(here.trials)
    assert more.hours > here.hours
    write_space(project, SPACE | {"set": {"training.epochs": 1}})
    tried.clear()
    search(project, 1, extend=True)
    assert tried == ["vsepp"]


def test_a_file_of_results_has_only_settings_of_the_space(project: Checkout) -> None:
    layout = project.layout
    space = SPACE | {"shared": {LR: {"low": 0.0012345, "high": 0.0012346}}}  # rounded: 0.00123
    write_space(project, space)
    (here,) = search(project, 2)
    shutil.rmtree(layout.experiment_runs("tuning"))
    assert search(project, 2, extend=True) == [here]

    shutil.rmtree(layout.experiment_runs("tuning"))
    path = layout.tuning("tiny", "vsepp")
    value = json.loads(path.read_text())
    value["trials"][1]["settings"][LR] = 0.5
    path.write_text(json.dumps(value))
    with pytest.raises(DataError, match=r"vsepp\.json: the settings of trial 2 lie outside"):
        search(project, 2, extend=True)


def test_an_experiment_on_the_best_settings_uses_the_model_of_the_search(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = checkout.layout
    write_space(checkout, SPACE | {"repeats": {"trials": 1, "seeds": 2}})
    (result,) = search(checkout, 4)
    models = [path.parent for path in layout.experiment_runs("tuning").glob("*/model")]
    assert len(models) == 2  # of the best trial and its repeat
    run_one_by_one(monkeypatch)
    plan = checkout.plan(tuned=True, points={"tuned": {}}, seeds=[0, 1, 2])

    def runs(name: str) -> Any:
        written = perform(checkout.experiment(plan, name))
        (point,) = json.loads(written.read_text())["points"]
        return point["runs"]

    first = runs("with")
    assert [run["seconds"] is None for run in first] == [True, True, False]
    rsums = [run["validation_rsum"] for run in first[:2]]
    best = result.trials[result.best]
    assert rsums == pytest.approx(best.repeats, abs=0.01)
    for kind in ("tuning", "presets"):
        shutil.rmtree(layout.experiment_runs(kind))
    alone = runs("without")
    assert [run["metrics"] for run in alone] == [run["metrics"] for run in first]
    assert all(run["seconds"] for run in alone)


def test_the_results_are_written_before_the_repeats(project: Checkout) -> None:
    write_space(project, SPACE | {"repeats": {"trials": 2, "seeds": 2}})
    name = "manymatch.experiments.run_folder.Run.finish"
    kill_during(lambda: search(project, 2), name, 4)  # the second training of the repeats
    result = Tuning.read(project.layout.tuning("tiny", "vsepp"))
    assert [trial.repeats for trial in result.trials] == [[t.rsum] for t in result.trials]
    (whole,) = search(project, 2)
    assert outcome(whole.trials) == outcome(result.trials)
    assert [len(trial.repeats) for trial in whole.trials] == [2, 2]


@pytest.mark.slow
def test_worker_processes_share_the_trials(
    project: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "side_by_side", SIDE_BY_SIDE)
    (result,) = search(project, 4, jobs=2)
    drawn = [trial.settings for trial in result.trials]
    assert len(drawn) == 4 and all(drawn.count(settings) == 1 for settings in drawn)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shared": {LR: {"low": 1.0, "high": 0.1}}}, "'low' must be below 'high'"),
        ({"shared": {LR: {"low": 1.0}}}, "expected either 'low' and 'high'"),
        ({"shared": {LR: "dropuot"}}, "did you mean 'dropout'"),
        ({"methods": {"cora": {}}}, "no settings of 'vsepp'"),
        ({"methods": {"vsepp": {"feature_dropuot": "dropout"}}}, "unknown key 'feature_dropuot'"),
        ({"shared": {"training.optimizer.rate": {"values": [1, 2]}}}, "unknown key 'training.opt"),
        ({"shared": {"size": {"values": [16, 17]}}}, r"tiny\.yaml: size: .*multiple of 2"),
        ({"shared": {"training.images_per_batch": {"low": 8, "high": 32}}}, "valid integer"),
        (
            {"shared": {"model.feature_dropout": "dropout"}},
            "'model.feature_dropout' is given twice",
        ),
        ({"shared": {"features": {"values": ["grid", "pixels"]}}}, "features: a search has one"),
        ({"shared": {"method": {"values": ["vsepp", "dive"]}}}, "method: .*dive"),
        ({"set": {"training.epochs": 0}}, "training.epochs"),
    ],
)
def test_a_faulty_space_is_one_line_before_anything_is_trained(
    project: Checkout, tried: list[str], change: dict[str, Any], message: str
) -> None:
    write_space(project, SPACE | change)
    with pytest.raises(ConfigError, match=message):
        search(project, 2)
    assert tried == []


@pytest.mark.parametrize("dataset", ["scenes", "flickr8k"])
def test_every_method_s_preset_lies_inside_of_its_space(dataset: str) -> None:
    space = read_space(Layout(ROOT).search_space(dataset))
    for name in space.methods:
        one = Search(Layout(ROOT), dataset, name, space, "", "", {})
        assert one.first_parameters()[0].keys() >= one.domains.keys(), name
        options = [domain.options or {} for domain in one.domains.values()]
        for settings in (parts for option in options for parts in option.values()):
            plain = {k: v for k, v in settings.items() if not hasattr(v, "draw")}
            one.preset(plain)
