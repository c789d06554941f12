"""The engine does each run once, also after a kill; the runs of these tests add numbers."""

import json
import os
import sys
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import pytest
import torch
from killing import kill_during

from manymatch.config.layout import Layout
from manymatch.config.strict import Strict, validate
from manymatch.experiments import workers
from manymatch.experiments.engine import Experiment, Run, perform
from manymatch.experiments.grid import Options, Plan
from manymatch.experiments.workers import finish_all, gpus_of
from manymatch.results.base import Result
from manymatch.util.errors import ConfigError, ManyMatchError


class SumPlan(Plan):
    experiment: Literal["sums"] = "sums"


class Addends(Strict):
    a: int = 0
    b: int = 0
    wide: bool = False


class SumResult(Result):
    path: ClassVar[str] = "sums/{name}.json"
    remedy: ClassVar[str] = "Run the experiment again."
    name: str
    points: list[dict[str, Any]]


class Sums(Experiment[SumPlan, Addends]):
    """A run adds the settings of its point and its seed. An `a` below 0 fails."""

    kind = "sums"
    plan_type = SumPlan
    files_of_a_run = ("kept",)
    code_now = "code"

    def settings(self, point, seed):
        return validate(Addends, {**self.plan.set, **point.settings}, "settings")

    def inputs(self, settings):
        return settings.model_dump(mode="json")

    def code(self, settings):
        return self.code_now

    def recorded(self, runs):
        files = SumResult.read_all(self.layout.reports)
        made = {tuple(one["of"]): one for file in files for p in file.points for one in p["runs"]}
        known = [(run, made.get((run.settings.a, run.settings.b, run.seed))) for run in runs]
        return [(run, one["code"], {**one, "seed": None}) for run, one in known if one]

    def run(self, settings, seed, folder):
        if settings.a < 0:
            raise ManyMatchError("no sums below 0")
        print("adding", file=sys.stderr)
        for name in ("kept", "left", "model"):
            (folder / name).touch()
        total = settings.a + settings.b + seed
        return {"sum": total, "of": [settings.a, settings.b, seed], "code": self.code_now}

    def headline(self, numbers):
        return f"sum {numbers['sum']}"

    def result(self, rows):
        return SumResult(name=self.name, points=[row.as_json("private") for row in rows])


def sums(root, name="what", code="code", **options):
    """The file of results of an experiment whose keys are among `options`."""
    keys = {key: options.pop(key) for key in ("over", "points", "seeds") if key in options}
    experiment = Sums(name, validate(SumPlan, keys, "test"), Layout(root), Options(**options))
    experiment.code_now = code
    return json.loads(perform(experiment).read_text())


def test_equal_points_are_done_once_and_a_run_leaves_little(tmp_path, worked, capsys):
    result = sums(tmp_path, points={"said": {"a": 1}, "said again": {"a": 1, "b": 0}})
    assert worked == ["said again, seed 0"]
    assert result["points"][0]["runs"] == result["points"][1]["runs"]
    (folder,) = folders(tmp_path)
    assert {path.name for path in folder.iterdir()} == {"result.json", "log.txt", "kept"}
    assert (folder / "log.txt").read_text() == "adding\n"
    same, first, second, last = capsys.readouterr().err.splitlines()
    assert same == "what: 'said again' has the settings of 'said', so its numbers are equal"
    assert first == "what: 1 runs, 0 of them finished before" and second.startswith("what: 1 at")
    assert last == "said again, seed 0: sum 1; the last"


def folders(root):
    found = Layout(root).experiment_runs("sums").glob("*/result.json")
    return sorted(path.parent for path in found)


def test_other_code_counts_if_told_so_and_a_model_is_made_again_if_it_is_to_stay(tmp_path, worked):
    plan = {"over": {"a": [1]}}
    first = sums(tmp_path, **plan)
    worked.clear()
    assert sums(tmp_path, code="new", accept_stale=True, **plan) == first and not worked
    assert sums(tmp_path, code="new", **plan)["points"][0]["runs"][0]["code"] == "new"
    assert len(worked) == 1
    sums(tmp_path, code="new", over={"a": [1, 2]}, keep=True)
    assert len(worked) == 3
    assert all((folder / "model").exists() for folder in folders(tmp_path))


def test_a_failed_run_is_named_and_the_others_are_finished(tmp_path, worked, capsys):
    with pytest.raises(ManyMatchError, match=r"1 of 3 runs failed \(a=-1, seed 0\)[^\n]*$"):
        sums(tmp_path, over={"a": [-1, 1, 2]})
    assert "a=-1, seed 0: failed: no sums below 0" in capsys.readouterr().err
    assert len(folders(tmp_path)) == 2 and not (tmp_path / "reports").exists()
    worked.clear()
    with pytest.raises(ConfigError, match="what, point 'a=big': settings: a"):
        sums(tmp_path, over={"a": [3, "big"]})
    assert not worked


def test_after_a_kill_the_missing_runs_are_done(tmp_path, worked):
    plan = {"over": {"a": [1, 2, 3]}}
    kill_during(lambda: sums(tmp_path, **plan), "manymatch.experiments.engine.Run.tidy", 3)
    finished = len(folders(tmp_path))
    assert 0 < finished < 3
    assert [p["runs"][0]["sum"] for p in sums(tmp_path, **plan)["points"]] == [1, 2, 3]
    assert len(worked) == 3 - finished


def test_what_other_code_left_in_a_folder_is_removed(tmp_path):
    def run(code):
        return Run("one", None, 0, code, tmp_path)

    def interrupted():
        (tmp_path / "checkpoint").touch()
        raise ManyMatchError("interrupted")

    seen = []

    def work():
        seen.append((tmp_path / "checkpoint").exists())
        return interrupted()

    for code in ("old", "old", "new"):
        with pytest.raises(ManyMatchError):
            run(code).once(work)
    assert seen == [False, True, False]


def test_the_line_of_progress_says_what_is_done_and_where_the_others_are(tmp_path, monkeypatch):
    states, futures = [], {name: Future() for name in ("done", "works", "waits")}
    pool = SimpleNamespace(submit=lambda caught, work, item: futures[item.label])
    monkeypatch.setattr(workers, "process_pool", lambda *_: nullcontext(pool))
    monkeypatch.setattr(workers, "working", lambda what, state: nullcontext(states.append(state)))
    for name in ("done", "works"):
        (log := tmp_path / name).write_text("loads\nepoch 3/8: loss 0.1\n")
        os.utime(log, (1e11, 1e11))
    futures["done"].set_result("1")
    items = [SimpleNamespace(label=name) for name in futures]
    next(workers.side_by_side(str, items, 1, [], "test", lambda item: tmp_path / item.label))
    assert states[0]() == "1 done; works: epoch 3/8"


def test_a_worker_for_each_gpu_of_the_device_or_core(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(workers, "pick_device", torch.device)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    used = []
    monkeypatch.setattr(workers, "side_by_side", lambda *given: used.append(given[2]) or [])
    for device, visible, jobs, one_a_core, expected, processes in (
        ("cpu", "", None, True, [], 8),
        ("cpu", "", None, False, [], 1),
        ("cuda", "", None, True, ["0", "1", "2"], 3),
        ("cuda", "4,7", 3, True, ["4", "7"], 3),
        ("cuda:1", "4,7", None, True, ["7"], 1),
    ):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert gpus_of(device) == expected
        more = {"jobs": jobs, "gpus": expected, "one_a_core": one_a_core}
        finish_all(str, range(20), str, what="test", logs=tmp_path, **more)
        assert used.pop() == processes
