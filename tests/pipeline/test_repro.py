"""The whole way of the data through `dvc repro`, on a tiny `scenes`."""

import json
import random
import time
from pathlib import Path

import pytest
import yaml
from workspace import kill, stages_run

from manymatch.model.checkpoint import WEIGHTS_HASH
from pipelines.graph import read_graph

pytestmark = pytest.mark.slow


@pytest.fixture
def committed(finished):
    """The finished workspace, put back afterwards to what was committed."""
    yield finished
    finished.run("git", "checkout", "-q", ".")
    finished.run("dvc", "checkout", "-q")


def test_a_run_leaves_every_result(finished):
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


def test_a_setting_reruns_what_it_changes_and_changed_back_nothing(committed):
    """As an experiment of DVC, whose metrics differ from those of the commit."""
    changed = "presets/scenes/cora.yaml:training.optimizer.lr=0.0007"
    ran = stages_run(committed.run("dvc", "exp", "run", "-S", changed))
    assert ran == ["code", "train@scenes-cora", "evaluate@scenes-cora", "report"]
    difference = committed.run("dvc", "metrics", "diff")
    assert "cora.json" in difference and "rsum" in difference
    assert "vsepp.json" not in difference
    committed.run("git", "checkout", "-q", "presets")
    assert stages_run(committed.run("dvc", "repro")) == []
    assert committed.run("git", "status", "--porcelain") == ""


def test_another_clone_pulls_everything(finished, tmp_path):
    finished.run("dvc", "remote", "add", "-q", "-d", "shared", str(tmp_path / "remote"))
    finished.commit("A remote")
    finished.run("dvc", "push", "-q")
    clone = finished.clone(tmp_path / "clone")
    clone.run("dvc", "pull", "-q")
    assert "up to date" in clone.run("dvc", "status")
    shown = clone.run("dvc", "metrics", "show")
    assert "rsum" in shown and max(map(len, shown.splitlines())) <= 120


def test_another_clone_makes_the_same_though_its_stages_are_killed(finished, tmp_path):
    """Each stage is killed a random moment after it began; the last run is let through."""
    workspace = finished.clone(tmp_path / "clone")
    moment = random.Random(0)
    rooms = ["download", "captions", "features", "scene_graphs", "shards", "train", "evaluate"]
    left, killed = [*rooms, "report"], 0
    while left:
        process = workspace.start("dvc", "repro")
        # On a busy machine a kill comes late: the next stage is then behind it, and not waited for.
        begun, message = _first_begun(process, left)
        if not begun and "exited with 130" in message:
            continue  # a stage that was begun before ended with the run that was killed
        if not begun and "left half of it" in workspace.run("manymatch", "check"):
            continue  # the kill fell into a write of DVC itself
        assert begun, f"{left[0]} was finished before it could be killed:\n{message}"
        left, killed = left[left.index(begun) + 1 :], killed + 1
        time.sleep(moment.uniform(0.05, 0.5))  # warm stages take little longer
        kill(process, workspace)
    assert killed > len(rooms) / 2
    workspace.run("manymatch", "check")  # as `make repro` does
    workspace.run("dvc", "repro")
    # The committed dvc.lock has the hashes of all outputs.
    assert workspace.run("git", "status", "--porcelain") == ""
    assert workspace.results() == finished.results()
    machine = json.loads((workspace.folder / "reports/machine/scenes/cora.json").read_text())
    assert set(machine) == {"train", "evaluate"}


def _first_begun(process, rooms):
    """The first of `rooms` of which `process` begins a stage (None if it begins none), and what it
    has said until then."""
    message = ""
    for line in process.stdout:
        message += line
        for room in rooms:
            if f"Running stage '{room}" in line:
                return room, message
    return None, message


def test_a_new_dataset_reruns_nothing_of_scenes(committed):
    committed.edit("params.yaml", {"datasets": ["scenes", "flickr8k"]})
    committed.run("dvc", "repro", "code")
    changed = json.loads(committed.run("dvc", "status", "--json"))
    assert len(changed) == 9 and all("flickr8k" in stage for stage in changed)


def test_ensembles_experiments_and_warm_starts_have_own_stages(committed, monkeypatch):
    plan = {"preset": "vsepp", "over": {"size": [16]}, "set": {"training.epochs": 1}}
    (committed.folder / "experiments" / "width.yaml").write_text(yaml.safe_dump(plan))
    presets = committed.folder / "presets" / "scenes"
    preset = yaml.safe_load((presets / "vsepp.yaml").read_text())
    preset["warm_start"] = {"model": "scenes/vsepp"}
    (presets / "after.yaml").write_text(yaml.safe_dump(preset))
    after = {"dataset": "scenes", "preset": "after", "model": "scenes/vsepp"}
    committed.edit("params.yaml", {"ensembles": ["vsepp+cora"], "experiments": {"width": "scenes"}})
    probed = {"scenes-cora": {"dataset": "scenes", "preset": "cora"}}
    committed.edit("params.yaml", {"warm_starts": {"scenes-after": after}, "probes": probed})
    committed.run("manymatch", "check")
    ran = stages_run(committed.run("dvc", "repro"))
    alone = {"experiment@width", "ensemble@scenes-vsepp+cora", "probe@scenes-cora"}
    warm = ["warm_train@scenes-after", "warm_evaluate@scenes-after"]
    assert set(ran) == {"code", *alone, *warm, "report"} and ran[-1] == "report"
    assert ran.index(warm[0]) < ran.index(warm[1])
    reports = committed.folder / "reports"
    assert (reports / "metrics" / "scenes" / "vsepp+cora.json").is_file()
    assert len(json.loads((reports / "experiments/scenes/width.json").read_text())["points"]) == 1
    assert "Image to entity" in (reports / "pages" / "scenes-probes.html").read_text()
    board = (reports / "leaderboard.md").read_text()
    assert "vsepp+cora | small-scale, ensemble" in board and "| after |" in board
    assert stages_run(committed.run("dvc", "repro")) == []

    # The warm start follows the other model's training, whose weights have a hash.
    monkeypatch.chdir(committed.folder)
    needs = {stage.name: stage.needs for stage in read_graph(Path()).stages}
    assert "train@scenes-vsepp" in needs[warm[0]]
    model = committed.folder / "models" / "scenes" / "vsepp" / "model.json"
    facts = json.loads(model.read_text())
    model.write_text(json.dumps(facts | {WEIGHTS_HASH: "another"}))
    assert WEIGHTS_HASH in committed.run("dvc", "status", warm[0])
    model.unlink()  # `dvc checkout` keeps what it does not know
