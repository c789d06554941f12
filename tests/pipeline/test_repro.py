"""The whole way of the data through `dvc repro`, on a tiny `scenes`."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from PIL import Image
from workspace import Workspace, kill, stages_run

pytestmark = pytest.mark.slow


@pytest.fixture
def committed(finished: Workspace) -> Iterator[Workspace]:
    """The finished workspace, put back afterwards to what was committed."""
    yield finished
    finished.run("git", "checkout", "-q", ".")
    finished.run("dvc", "checkout", "-q")


def test_a_run_leaves_every_result(finished: Workspace) -> None:
    reports = finished.folder / "reports"
    page = (reports / "index.html").read_text()
    assert "vsepp" in page and "cora" in page
    for method in ("vsepp", "cora"):
        metrics = json.loads((reports / "results" / "scenes" / f"{method}.json").read_text())
        recalls = [metrics[way][f"r{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10)]
        assert metrics["rsum"] == pytest.approx(sum(recalls), abs=1e-3)
        assert 0 < metrics["multi"]["i2t"]["map_at_r"] < 100
        assert (finished.folder / "models" / "scenes" / method / "model.safetensors").is_file()
    assert "scenes" in (reports / "leaderboard.md").read_text()


def test_a_second_run_runs_no_stage(finished: Workspace) -> None:
    assert stages_run(finished.run("dvc", "repro")) == []


def test_a_setting_reruns_what_it_changes_and_changed_back_nothing(committed: Workspace) -> None:
    committed.edit("presets/scenes/cora.yaml", {"training.optimizer.lr": 0.0007})
    ran = stages_run(committed.run("dvc", "repro"))
    assert ran == ["code", "train@scenes-cora", "evaluate@scenes-cora", "report"]
    committed.run("git", "checkout", "-q", "presets")
    assert stages_run(committed.run("dvc", "repro")) == []
    assert committed.run("git", "status", "--porcelain") == ""


def test_a_comment_reruns_the_hashes_and_a_template_the_report(finished: Workspace) -> None:
    """`finished` hashes the sources of the checkout; this one its own."""
    own = finished.with_own_sources()
    package = own.folder / "src" / "manymatch"
    for name, text, expected in (
        ("training/train.py", "\n# A remark.\n", ["code"]),
        ("reporting/templates/page.html", "<!-- A remark. -->\n", ["code", "report"]),
    ):
        path = package / name
        path.write_text(path.read_text() + text)
        assert stages_run(own.run("dvc", "repro")) == expected
    own.run("git", "checkout", "-q", ".")
    own.run("dvc", "checkout", "-q")


def test_another_clone_pulls_everything_or_makes_the_same(
    finished: Workspace, tmp_path: Path
) -> None:
    finished.run("dvc", "remote", "add", "-q", "-d", "shared", str(tmp_path / "remote"))
    finished.commit("A remote")
    finished.run("dvc", "push", "-q")
    for name in ("pulls", "makes"):
        finished.run("git", "clone", "-q", ".", str(tmp_path / name))
    pulls, makes = (Workspace(tmp_path / name) for name in ("pulls", "makes"))
    pulls.run("dvc", "pull", "-q")
    assert "up to date" in pulls.run("dvc", "status")
    shown = pulls.run("dvc", "metrics", "show")
    assert "rsum" in shown and max(map(len, shown.splitlines())) <= 120

    assert len(stages_run(makes.run("dvc", "repro"))) == 11
    assert makes.run("git", "status", "--porcelain") == ""
    machine = json.loads((makes.folder / "reports/machine/scenes/cora.json").read_text())
    assert set(machine) == {"train", "evaluate"}


def test_an_experiment_shows_in_the_metrics_diff(committed: Workspace) -> None:
    committed.run("dvc", "exp", "run", "-S", "presets/scenes/vsepp.yaml:training.epochs=1")
    difference = committed.run("dvc", "metrics", "diff")
    assert "vsepp.json" in difference and "rsum" in difference
    assert "cora.json" not in difference


def test_killed_stages_go_on_to_the_same_results(
    finished: Workspace, new_workspace: Callable[[], Workspace]
) -> None:
    """Each stage is killed a random moment after it began; the last run is let through."""
    workspace = new_workspace()
    moment = random.Random(0)
    rooms = ["download", "captions", "features", "scene_graphs", "shards", "train", "evaluate"]
    left, killed = [*rooms, "report"], 0
    while left:
        process = workspace.start("dvc", "repro")
        # On a busy machine a kill comes late: the next stage is then behind it, and not waited for.
        begun, message = _first_begun(process, left)
        assert begun, f"{left[0]} was finished before it could be killed:\n{message}"
        left, killed = left[left.index(begun) + 1 :], killed + 1
        time.sleep(moment.uniform(0.2, 4.0 if begun in ("train", "features") else 1.5))
        kill(process)
    assert killed > len(rooms) / 2
    workspace.run("dvc", "repro")
    assert workspace.results() == finished.results()


def _first_begun(process: subprocess.Popen[str], rooms: list[str]) -> tuple[str | None, str]:
    """The first of `rooms` of which `process` begins a stage (None if it begins none), and what it
    has said until then."""
    assert process.stdout is not None
    message = ""
    for line in process.stdout:
        message += line
        for room in rooms:
            if f"Running stage '{room}" in line:
                return room, message
    return None, message


def test_by_hand_a_stage_says_what_is_wrong_in_one_line(committed: Workspace) -> None:
    output = committed.run("manymatch", "train", "scenes", "corra", code=1)
    assert output.startswith("error: ") and output.count("\n") == 1
    assert "did you mean 'cora'?" in output


def test_a_new_dataset_reruns_nothing_of_scenes(committed: Workspace, tmp_path: Path) -> None:
    folder = tiny_flickr8k(tmp_path / "flickr8k")
    committed.edit("params.yaml", {"datasets": ["scenes", "flickr8k"]})
    committed.edit("params.yaml", {"sources.flickr8k.folder": str(folder)})
    for method in ("vsepp", "cora"):
        committed.edit(
            f"presets/flickr8k/{method}.yaml",
            {"training.epochs": 1, "training.images_per_batch": 8, "model.size": 32},
        )
    ran = stages_run(committed.run("dvc", "repro"))
    assert len(ran) == 11 and (ran[0], ran[-1]) == ("code", "report")
    assert [stage for stage in ran if "scenes-" in stage or stage.endswith("@scenes")] == []
    for method in ("vsepp", "cora"):
        metrics = committed.folder / "reports" / "results" / "flickr8k" / f"{method}.json"
        assert json.loads(metrics.read_text())["i2t"]["r10"] > 0


def test_ensembles_experiments_and_warm_starts_have_own_stages(
    committed: Workspace,
) -> None:
    plan = {"preset": "vsepp", "over": {"size": [16, 32]}, "set": {"training.epochs": 1}}
    (committed.folder / "experiments" / "width.yaml").write_text(yaml.safe_dump(plan))
    presets = committed.folder / "presets" / "scenes"
    preset = yaml.safe_load((presets / "vsepp.yaml").read_text())
    preset["warm_start"] = {"model": "scenes/vsepp"}
    (presets / "after.yaml").write_text(yaml.safe_dump(preset))
    after = {"dataset": "scenes", "preset": "after", "model": "scenes/vsepp"}
    committed.edit("params.yaml", {"ensembles": ["vsepp+cora"], "experiments": {"width": "scenes"}})
    committed.edit("params.yaml", {"warm_starts": {"scenes-after": after}})
    committed.run("manymatch", "check")
    ran = stages_run(committed.run("dvc", "repro"))
    alone = {"experiment@width", "ensemble@scenes-vsepp+cora"}
    warm = ["warm_train@scenes-after", "warm_evaluate@scenes-after"]
    assert set(ran) == {"code", *alone, *warm, "report"} and ran[-1] == "report"
    assert ran.index(warm[0]) < ran.index(warm[1])
    reports = committed.folder / "reports"
    assert (reports / "metrics" / "scenes" / "vsepp+cora.json").is_file()
    assert len(json.loads((reports / "ablations/scenes/width.json").read_text())["points"]) == 2
    board = (reports / "leaderboard.md").read_text()
    assert "vsepp+cora | small-scale, ensemble" in board and "| after |" in board
    assert stages_run(committed.run("dvc", "repro")) == []

    committed.edit("presets/scenes/vsepp.yaml", {"training.optimizer.lr": 0.0007})
    ran = stages_run(committed.run("dvc", "repro"))
    assert ran.index("train@scenes-vsepp") < ran.index("warm_train@scenes-after")


def tiny_flickr8k(folder: Path) -> Path:
    """A folder in the dataset's own format: 24 plain pictures, 5 captions each."""
    (folder / "images").mkdir(parents=True)
    colours = ["red", "green", "blue", "white", "black", "orange"]
    names = [f"{1000 + i}_ab.jpg" for i in range(24)]
    captions = []
    for i, name in enumerate(names):
        colour = colours[i % len(colours)]
        Image.new("RGB", (64, 48), colour).save(folder / "images" / name)
        captions += [f"{name}#{k}\tA {colour} wall number {i} seen {k} times .\n" for k in range(5)]
    (folder / "Flickr8k.token.txt").write_text("".join(captions))
    for split, part in (("train", names[:16]), ("dev", names[16:20]), ("test", names[20:])):
        (folder / f"Flickr_8k.{split}Images.txt").write_text("".join(f"{n}\n" for n in part))
    return folder
