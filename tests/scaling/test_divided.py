"""Which stages are divided, and how their parts run on a Dask cluster."""

import json
import os
import socket
import subprocess
import sys

import pytest

from manymatch.util.errors import ConfigError
from pipelines import parts
from pipelines.graph import Stage

MAKE_PART = """
import sys
number, _, count = sys.argv[2].partition("/")
assert sys.argv[1] == "--part"
print("working on", number)
if number == "2":
    sys.exit(f"part {number} is broken")
open(f"{number}-of-{count}", "w").close()
"""

CANCELLED = """
import time, distributed
from pathlib import Path
from pipelines import parts, process

def work():
    begun = lambda line: Path(line).touch()
    process.run(["sh", "-c", "echo begun; exec sleep 300"], begun, wanted=parts.wanted())
    Path("ended").touch()

def wait_for(name):
    deadline = time.monotonic() + 300
    while not Path(name).exists() and time.monotonic() < deadline:
        time.sleep(0.1)

with distributed.LocalCluster(**parts.LOCAL, threads_per_worker=1) as cluster:
    with distributed.Client(cluster) as client:
        future = client.submit(work)
        wait_for("begun")
wait_for("ended")
"""


def stage(kind):
    return Stage(f"{kind}@scenes", f"manymatch {kind} scenes", (), ())


def test_heavy_stages_that_have_to_run_are_divided(monkeypatch):
    made, called = {"shards@scenes"}, []

    class Flow:
        def with_options(self, **options):
            return lambda *arguments: called.append(arguments)

    monkeypatch.setattr(parts, "divided", Flow())
    monkeypatch.setattr(parts, "is_made", lambda root, name, pull: name in made)
    divide = parts.dividing(3, "")
    for kind in ("captions", "features", "shards", "train"):
        divide(stage(kind), {"GPU": "1"})
    assert called == [("features@scenes", "manymatch features scenes", 3, {"GPU": "1"})]
    with socket.create_server(("127.0.0.1", 0)) as scheduler:
        address = f"tcp://127.0.0.1:{scheduler.getsockname()[1]}"
        parts.dividing(3, address)(stage("features"), {"GPU": "1"})
    assert called[1][-1] == {}  # the machines of a cluster have their own GPUs


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("nonsense:abc", "expected tcp://HOST:PORT"),
        ("foo://head:1", "expected tcp://HOST:PORT"),
        ("tcp://127.0.0.1:1", "no Dask scheduler can be reached there"),
    ],
)
def test_a_cluster_that_is_none_is_refused_at_once(cluster, said):
    with pytest.raises(ConfigError, match=f"^cluster={cluster}: {said}"):
        parts.dividing(3, cluster)


@pytest.mark.slow
def test_parts_run_side_by_side_and_a_broken_one_is_told(root, tmp_path):
    (tmp_path / "make.py").write_text(MAKE_PART)
    done = subprocess.run(
        [sys.executable, root / "tests" / "helpers" / "divided_run.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["made"] == ["1-of-2"]
    lines = ["part 1/2: working on 1", "part 2/2: part 2 is broken", "part 2/2: working on 2"]
    assert result["shown"] == lines
    assert set(result["hosts"]) <= {"127.0.0.1"}
    assert result["message"].startswith("python make.py --part 2/2 failed (exit code 1)")
    assert "part 2 is broken" in result["message"]


@pytest.mark.slow
def test_a_part_ends_with_the_run_that_waited_for_it(root, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", CANCELLED]
    subprocess.run(command, cwd=tmp_path, env=environment, timeout=900, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "ended"]
