"""An experiment on presets trains the missing runs only, also after a kill, and names faults."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from killing import kill_during
from one_by_one import run_one_by_one
from small_methods import SMALL_SETS
from tiny_checkout import PRESET, Checkout

from manymatch.config.layout import Layout, ResultFiles
from manymatch.config.preset import read_preset
from manymatch.evaluation.evaluate import evaluate
from manymatch.evaluation.split_results import EvaluationOptions
from manymatch.experiments.engine import perform
from manymatch.experiments.presets import experiment as module
from manymatch.experiments.presets import run as running
from manymatch.experiments.presets.plan import PresetPlan
from manymatch.experiments.run_folder import Run
from manymatch.reporting.sections.experiments import table
from manymatch.results.experiments import Experiment
from manymatch.training.train import train
from manymatch.util.errors import ConfigError, DataError, ManyMatchError

LR = "training.optimizer.lr"


def record(
    checkout: Checkout, plan: PresetPlan, name: str = "what", **options: Any
) -> dict[str, Any]:
    written = perform(checkout.experiment(plan, name, **options))
    assert written == checkout.layout.reports / "experiments" / "tiny" / f"{name}.json"
    value: dict[str, Any] = json.loads(written.read_text())
    return value


def rsums(record: dict[str, Any]) -> dict[str, list[float]]:
    """The rsums of each point, one for each seed."""
    return {
        point["label"]: [run["metrics"]["rsum"] for run in point["runs"]]
        for point in record["points"]
    }


def test_every_point_is_trained_with_every_seed(checkout: Checkout, worked: list[str]) -> None:
    plan = checkout.plan(over={"size": [4, 8]}, seeds=[0, 1], about="How wide?")
    written = record(checkout, plan)
    assert worked == ["size=4, seed 0", "size=4, seed 1", "size=8, seed 0", "size=8, seed 1"]
    assert [point["settings"] for point in written["points"]] == [{"size": 4}, {"size": 8}]
    assert written["keys"] == ["size"] and written["about"] == "How wide?"
    assert (written["images"], written["captions"], written["split"]) == (8, 24, "test")
    run = written["points"][1]["runs"][1]
    assert (run["seed"], run["epochs"]) == (1, 2)
    assert run["seconds"] > 0 and "multi" in run["metrics"]
    i2t, t2i = run["hits"]["i2t"], run["hits"]["t2i"].split()
    assert (len(i2t), [*map(len, t2i)]) == (8, [3] * 8)
    means = sum(map(int, i2t)) / 8 + sum(map(int, "".join(t2i))) / 24
    assert run["metrics"]["rsum"] == pytest.approx(100 * means, abs=0.01)
    assert written["points"][0]["resolved"]["model"]["size"] == 4


def test_numbers_are_those_of_train_and_evaluate(checkout: Checkout, worked: list[str]) -> None:
    results = record(checkout, checkout.plan(over={"size": [4]}), keep=True)
    (run,) = results["points"][0]["runs"]
    preset = read_preset(checkout.runs[0] / "model" / "preset.yaml")
    layout, out = checkout.layout, checkout.layout.root / "by-hand"
    shards = layout.shards("tiny", "grid")
    places = [out / name for name in ("model", "curves", "checkpoints")]
    train(preset, shards, layout.vocabulary("tiny"), *places)
    written = ResultFiles.inside(out)
    evaluate(places[0], shards, written, EvaluationOptions(layout.relevance("tiny")))
    assert run["metrics"] == json.loads(written.full.read_text())
    provenance = json.loads(written.provenance.read_text())
    assert run["checkpoint_sha256"] == provenance["checkpoint_sha256"]


def test_runs_of_set_methods_say_whether_their_sets_are_alive(
    checkout: Checkout, worked: list[str]
) -> None:
    preset = {**PRESET, "method": "dive", "model": SMALL_SETS}
    (checkout.layout.presets / "tiny" / "dive.yaml").write_text(yaml.safe_dump(preset))
    written = record(checkout, checkout.plan(over={"preset": ["dive", "vsepp"]}))
    of_sets, of_vector = (point["runs"][0] for point in written["points"])
    sets, vector = of_sets["metrics"], of_vector["metrics"]
    variances = [sets["sets"][side]["log_circular_variance"] for side in ("images", "texts")]
    assert all(variance < 0 for variance in variances)
    assert "sets" not in vector
    assert sum(map(sum, of_sets["pairs"]["share"])) == pytest.approx(1, abs=1e-3)
    assert "pairs" not in of_vector


def test_sets_are_measured_without_one_of_their_elements(
    checkout: Checkout, worked: list[str]
) -> None:
    preset = {**PRESET, "method": "dive", "model": SMALL_SETS}
    (checkout.layout.presets / "tiny" / "dive.yaml").write_text(yaml.safe_dump(preset))
    asked = {"images": [[1, 3, 4]], "texts": [[2, 3, 4]]}
    point = {"preset": "dive", "over": {"sets.iterations": [1]}}
    whole = record(checkout, checkout.plan(**point))["points"][0]["runs"][0]
    written = record(checkout, checkout.plan(**point, elements=asked))
    (run,) = written["points"][0]["runs"]
    assert len(worked) == 2 and run["metrics"]["rsum"] == whole["metrics"]["rsum"]
    for side, name in (("images", "1+3+4"), ("texts", "2+3+4")):
        measured = run["metrics"]["sets"][side]["rsum_of"]
        assert {*measured} == {*"1234", name} and 0 < measured[name] <= 600
    heads = [column.heading for column in table(Experiment.model_validate(written)).columns]
    assert {"rsum, image elements 1+3+4 only", "rsum, caption elements 2+3+4 only"} <= {*heads}


def test_finished_runs_are_never_trained_again(checkout: Checkout, worked: list[str]) -> None:
    first = record(checkout, checkout.plan(over={"size": [4, 8]}))
    worked.clear()
    assert record(checkout, checkout.plan(over={"size": [4, 8]})) == first
    # The same preset with its keys in another order.
    preset = checkout.layout.presets / "tiny" / "vsepp.yaml"
    stated = yaml.safe_load(preset.read_text())
    in_reverse = {**stated, "model": dict(reversed(stated["model"].items()))}
    assert list(in_reverse["model"]) != list(stated["model"])
    preset.write_text(yaml.safe_dump(in_reverse, sort_keys=False))
    assert record(checkout, checkout.plan(over={"size": [4, 8]})) == first
    assert worked == []
    # A value, a seed, and another ablation that has a point in common.
    extended = record(checkout, checkout.plan(over={"size": [8, 6]}, seeds=[0, 1]), "other")
    assert worked == ["size=8, seed 1", "size=6, seed 0", "size=6, seed 1"]
    assert extended["points"][0]["runs"][0] == first["points"][1]["runs"][0]


def test_equal_points_are_trained_once(checkout: Checkout, worked: list[str]) -> None:
    points = {"as it is": {}, "said again": {"size": 8}, "other": {"size": 4}}
    written = record(checkout, checkout.plan(points=points))
    assert worked == ["said again, seed 0", "other, seed 0"]
    same = rsums(written)
    assert same["as it is"] == same["said again"]


def test_other_data_are_another_run(checkout: Checkout, worked: list[str]) -> None:
    plan = checkout.plan(over={"size": [4]})
    record(checkout, plan)
    layout = checkout.layout
    index = layout.shards("tiny", "grid") / "SEAL.json"
    for path in (
        layout.vocabulary("tiny"),
        layout.captions("tiny"),
        index,
        layout.relevance("tiny"),
    ):
        worked.clear()
        if path == layout.relevance("tiny"):
            _judge_another_pair(path)
        else:
            path.write_bytes(path.read_bytes() + b"\n")
        record(checkout, plan)
        assert worked == ["size=4, seed 0"], path.name


def _judge_another_pair(path: Path) -> None:
    table = pq.read_table(path)
    row = {"image_id": "test.2", "caption_id": "test.3#0"}
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist([row], table.schema)]), path)


def test_results_of_other_code_count_only_if_told_so(
    checkout: Checkout, worked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = checkout.plan(over={"size": [4]})
    first = record(checkout, plan)
    worked.clear()
    monkeypatch.setattr(module, "code_hash", lambda *entries: "changed")
    assert record(checkout, plan, accept_stale=True) == first
    assert worked == []
    record(checkout, plan)
    assert worked == ["size=4, seed 0"]


def test_another_machine_extends_the_file_of_results(
    checkout: Checkout, worked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = checkout.layout
    first = record(checkout, checkout.plan(over={"size": [4]}))
    shutil.rmtree(layout.experiment_runs("presets"))
    index = layout.shards("tiny", "grid") / "SEAL.json"
    index.write_bytes(index.read_bytes() + b"\n")  # as if the features had other last bits
    more = checkout.plan(over={"size": [4]}, seeds=[0, 1])
    worked.clear()
    extended = record(checkout, more, extend=True)
    assert worked == ["size=4, seed 1"]
    assert extended["points"][0]["runs"][0] == first["points"][0]["runs"][0]
    # Other captions, other code, and a run that is not asked to extend are trained.
    for change in ("code", "captions", "nothing"):
        shutil.rmtree(layout.experiment_runs("presets"))
        if change == "code":
            monkeypatch.setattr(module, "code_hash", lambda *entries: "changed")
        elif change == "captions":
            captions = layout.captions("tiny")
            captions.write_bytes(captions.read_bytes() + b"\n")
        worked.clear()
        record(checkout, more, extend=change != "nothing")
        assert len(worked) == 2, change
        if change == "code":  # results of older code count only as long as they are accepted
            shutil.rmtree(layout.experiment_runs("presets"))
            monkeypatch.setattr(module, "code_hash", lambda *entries: "changed again")
            worked.clear()
            record(checkout, more, extend=True, accept_stale=True)
            assert worked == []
            record(checkout, more)
            assert len(worked) == 2


def test_another_machine_takes_the_runs_of_another_experiment(
    checkout: Checkout, worked: list[str]
) -> None:
    layout = checkout.layout
    first = record(checkout, checkout.plan(over={"size": [4]}), "first")
    shutil.rmtree(layout.experiment_runs("presets"))
    # The same run by other code, in a file that comes before.
    path = layout.reports / "experiments" / "tiny" / "first.json"
    stale = json.loads(path.read_text())
    stale["points"][0]["runs"][0].update(sources="other code", epochs=99)
    path.with_name("earlier.json").write_text(json.dumps({**stale, "name": "earlier"}))
    path.with_name("zz.json").write_text(json.dumps({**stale, "name": "zz"}))
    for options in ({}, {"accept_stale": True}):
        worked.clear()
        plan = checkout.plan(over={"size": [4, 8]})
        second = record(checkout, plan, "second", extend=True, **options)
        assert worked == ([] if options else ["size=8, seed 0"])
        assert second["points"][0]["runs"] == first["points"][0]["runs"]
        # A file with numbers of other code never replaces those of the present code.
        record(checkout, plan, "second", extend=True, **options)
        assert worked == ([] if options else ["size=8, seed 0"])


def test_models_stay_only_if_told_so(checkout: Checkout, worked: list[str]) -> None:
    record(checkout, checkout.plan(over={"size": [4]}))
    assert {path.name for path in checkout.runs[0].iterdir()} == {"result.json", "log.txt"}
    record(checkout, checkout.plan(over={"size": [6]}), "kept", keep=True)
    weights = [run / "model" / "model.safetensors" for run in checkout.runs]
    assert [path.exists() for path in weights].count(True) == 1
    record(checkout, checkout.plan(over={"size": [4, 6]}), keep=True)
    assert all(path.exists() for path in weights) and len(worked) == 3


@pytest.fixture(scope="module")
def undisturbed(_made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """The rsums of the plan that the kills interrupt."""
    folder = tmp_path_factory.mktemp("undisturbed") / "checkout"
    checkout = Checkout(Layout(Path(shutil.copytree(_made, folder))))
    with pytest.MonkeyPatch.context() as patch:
        run_one_by_one(patch)
        return rsums(record(checkout, checkout.plan(**KILLED_PLAN)))


KILLED_PLAN: dict[str, Any] = {"over": {"size": [4, 6]}, "seeds": [0, 1]}
KILLS = {
    "in the middle of training": ("manymatch.training.loop.validate", 4),
    "before it is evaluated": ("manymatch.experiments.presets.run.evaluate", 2),
    "after its result is kept": ("manymatch.experiments.run_folder.Run.tidy", 4),
}


@pytest.mark.parametrize("moment", KILLS)
def test_killed_and_run_again_it_ends_with_the_same_numbers(
    checkout: Checkout, worked: list[str], undisturbed: dict[str, list[float]], moment: str
) -> None:
    plan = checkout.plan(**KILLED_PLAN)
    kill_during(lambda: record(checkout, plan), *KILLS[moment])
    finished = len(checkout.runs)
    assert 0 < finished < 4
    assert rsums(record(checkout, plan)) == undisturbed
    assert len(worked) == 4 - finished


def test_nothing_of_a_run_that_other_code_began_is_used(
    checkout: Checkout, worked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = checkout.plan(over={"size": [4]})
    kill_during(lambda: record(checkout, plan), "manymatch.experiments.presets.run.evaluate", 1)
    monkeypatch.setattr(module, "code_hash", lambda *entries: "changed")
    written = record(checkout, plan)
    assert written["points"][0]["runs"][0]["seconds"] is not None  # trained anew, and whole
    assert worked == ["size=4, seed 0"]


def test_a_failed_run_is_named_and_the_others_are_finished(
    checkout: Checkout, worked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = checkout.plan(over={LR: [1e30, 0.01]})
    with pytest.raises(ManyMatchError) as error:
        record(checkout, plan)
    assert "1 of 2 runs failed (lr=1e+30, seed 0)" in str(error.value)
    assert "\n" not in str(error.value)
    assert "lr=1e+30, seed 0: failed: training diverged" in capsys.readouterr().err
    assert len(checkout.runs) == 1
    assert not (checkout.layout.reports / "experiments").exists()


def test_a_faulty_point_is_named_before_anything_is_trained(
    checkout: Checkout, worked: list[str]
) -> None:
    with pytest.raises(ConfigError, match="point 'size=big': model of method 'vsepp': size"):
        record(checkout, checkout.plan(over={"size": [4, "big"]}))
    (checkout.layout.vocabulary("tiny")).unlink()
    with pytest.raises(DataError, match="Run the stage 'captions'"):
        record(checkout, checkout.plan(over={"size": [4]}))
    assert worked == []


def test_progress_is_a_line_a_run(
    checkout: Checkout, worked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    record(checkout, checkout.plan(over={"size": [4, 6]}))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "what: 2 runs, 0 of them finished before"
    assert len(lines) == 4
    assert lines[2].startswith("size=4, seed 0: rsum ") and "1 left" in lines[2]
    assert lines[3].endswith("the last")
    log = (checkout.runs[0] / "log.txt").read_text()
    assert "epoch 2/2" in log


def test_a_run_that_another_process_finished_meanwhile_is_taken(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, worked: list[str]
) -> None:
    plan = checkout.plan(over={"size": [4]})
    first = record(checkout, plan)
    (result,) = (path / "result.json" for path in checkout.runs)
    finished = result.rename(result.with_suffix(".later"))
    read = Run.numbers

    def finished_after_the_first_look(run: Run, *given: Any, **named: Any) -> Any:
        numbers = read(run, *given, **named)
        finished.rename(result) if finished.exists() else None
        return numbers

    monkeypatch.setattr(Run, "numbers", finished_after_the_first_look)
    monkeypatch.setattr(running, "train", None)
    assert record(checkout, plan) == first
    assert len(worked) == 2
