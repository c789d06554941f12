"""Which stages are divided, and how their parts run on a Dask cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from prefect.testing.utilities import prefect_test_harness

from pipelines import parts
from pipelines.graph import Stage
from pipelines.stage import StageFailed

MAKE_PART = """
import sys
number, _, count = sys.argv[2].partition("/")
assert sys.argv[1] == "--part"
if number in sys.argv[3:]:
    sys.exit(f"part {number} is broken")
print("made", number)
open(f"{number}-of-{count}", "w").close()
"""


def stage(kind: str) -> Stage:
    return Stage(f"{kind}@scenes", f"manymatch {kind} scenes", (), ())


def test_heavy_stages_that_have_to_run_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    made, called = {"shards@scenes"}, []

    class Flow:
        def with_options(self, **options: Any) -> Any:
            return lambda *arguments: called.append(arguments)

    monkeypatch.setattr(parts, "divided", Flow())
    monkeypatch.setattr(parts, "is_made", lambda root, name, pull: name in made)
    divide = parts.dividing(3, "")
    for kind in ("captions", "features", "shards", "train"):
        divide(stage(kind))
    assert called == [("features@scenes", "manymatch features scenes", 3)]


def test_only_commands_that_take_parts_are_divided(root: Path) -> None:
    from pipelines.graph import read_graph

    commands = {each.kind: each.command for each in read_graph(root).stages}
    assert commands.keys() >= parts.HEAVY
    names = {kind: commands[kind].split()[1] for kind in parts.HEAVY}
    assert names == {"features": "features", "scene_graphs": "scene-graphs", "shards": "shards"}


@pytest.mark.slow
def test_parts_run_side_by_side_and_a_broken_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "make.py").write_text(MAKE_PART)
    monkeypatch.chdir(tmp_path)
    divided = parts.divided.with_options(task_runner=parts._runner("", 3))
    with prefect_test_harness():
        divided("shards", "python make.py", 3)
        assert sorted(path.name for path in tmp_path.glob("*-of-3")) == [
            "1-of-3",
            "2-of-3",
            "3-of-3",
        ]
        listening = [each for each in psutil.Process().net_connections() if each.status == "LISTEN"]
        assert all(each.laddr.ip == "127.0.0.1" for each in listening)
        (tmp_path / "make.py").write_text(MAKE_PART.replace("sys.argv[3:]", '"2"'))
        with pytest.raises(StageFailed, match="part 2 is broken") as fault:
            divided("shards", "python make.py", 3)
    assert str(fault.value).startswith("python make.py --part 2/3 failed (exit code 1)")
