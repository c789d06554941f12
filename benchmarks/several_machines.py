"""Rehearsal of several machines on one: two workers train two methods at the same time.

    python benchmarks/several_machines.py [--folder DIR] [--keep]

Clones of this checkout stand for machines, on a tiny `scenes`: a Prefect server, a worker in clone
`one` and a worker in clone `two`, and a folder as the DVC remote that they share. `one` prepares
the data, both train at once, and clone `three` assembles the report from what they pushed. Printed:
how long each step took, and who ran which stages. It fails if a stage was run twice that could be
pulled, or if the report's numbers are not those of the workers.
"""

import contextlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from measuring import arguments

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "helpers")]

from service import free_ports, make_service  # noqa: E402
from workspace import Workspace  # noqa: E402

METHODS = ("vsepp", "cora")
TEMPLATE = "deploy/process.json"


@dataclass
class Machine(Workspace):
    """A checkout in which commands run with its own sources and these `settings`."""

    own_sources: bool = True
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | self.settings

    @contextlib.contextmanager
    def running(self, *command: str) -> Iterator[Path]:
        """The command in the background, for the block; yields its log."""
        path = self.folder.with_name(f"{self.folder.name}-{command[1]}.log")
        with path.open("w") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        try:
            yield path
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    options = arguments(
        __doc__, folder=(None, "where the clones are made"), keep=(False, "keep them")
    )
    folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="several-machines-"))
    print(f"logs and clones: {folder}")
    rehearse(folder)
    if not options.keep:
        shutil.rmtree(folder)


def rehearse(folder: Path) -> None:
    one, two, three = _machines(folder)
    with _service(one), _worker(one) as first:
        with timed("one prepares the data and pushes it"):
            one.run(*_deployment("prepare/prepare-data"))
        with _worker(two) as second, timed("one and two train and evaluate at the same time"):
            _train_at_once(one)
    said = {"one": first.read_text(), "two": second.read_text()}
    with timed("three assembles the report"):
        said["three"] = three.run("dvc", "repro", "--pull")
    judge(said, three, (one, two))


def _machines(folder: Path) -> tuple[Machine, Machine, Machine]:
    password = f"rehearsal:{secrets.token_urlsafe()}"
    settings = {
        "MANYMATCH_SHARE": "1",
        "PREFECT_API_AUTH_STRING": password,
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_API_URL": f"http://127.0.0.1:{free_ports()}/api",
        "PREFECT_PLUGINS_ENABLED": "false",
    }
    one, two, three = (
        Machine(folder / name, settings=settings) for name in ("one", "two", "three")
    )
    one.folder.mkdir()
    make_service(ROOT, one.folder)
    template = one.folder / TEMPLATE  # the workers' logs tell what their runs did
    template.write_text(template.read_text().replace('output": false', 'output": true'))
    one.run("dvc", "remote", "add", "-q", "--default", "shared", str(folder / "remote"))
    one.commit("A shared remote")
    for other in (two, three):
        one.clone(other.folder)
    return one, two, three


@contextlib.contextmanager
def _service(machine: Machine) -> Iterator[None]:
    """A server with a pool whose queues let two runs go at once, and the deployments."""
    server = machine.settings["PREFECT_API_URL"]
    port = server.removesuffix("/api").rpartition(":")[2]
    with machine.running("prefect", "server", "start", "--host", "127.0.0.1", "--port", port):
        _wait_for(f"{server}/health")
        pool = ("manymatch", "--type", "process", "--base-job-template", TEMPLATE)
        machine.run("prefect", "work-pool", "create", *pool)
        machine.run("prefect", "--no-prompt", "deploy", "--all")
        yield


def _wait_for(url: str) -> None:
    """Wait until a server answers there."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            urlopen(url).close()
            return
        time.sleep(0.5)
    sys.exit(f"no answer from {url}")


def _worker(machine: Machine) -> contextlib.AbstractContextManager[Path]:
    """A worker that takes one run at a time."""
    name = machine.folder.name
    start = ("prefect", "worker", "start", "--pool", "manymatch", "--type", "process")
    return machine.running(*start, "--limit", "1", "--name", name)


def _deployment(name: str) -> tuple[str, ...]:
    return "prefect", "deployment", "run", name, "--watch"


def _train_at_once(machine: Machine) -> None:
    commands = [_deployment(f"train/train-{method}") for method in METHODS]
    settings: Any = {"cwd": machine.folder, "env": machine.environment, "text": True}
    settings |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    started = [subprocess.Popen(command, **settings) for command in commands]
    for process in started:
        output, _ = process.communicate()
        if process.returncode:
            sys.exit(f"a training failed:\n{output}")


def judge(said: dict[str, str], assembled: Machine, workers: tuple[Machine, ...]) -> None:
    """Print who ran what; exit with a line if that, or a number, is not as it should be."""
    ran = {
        name: [line.split("'")[1] for line in text.splitlines() if "Running stage '" in line]
        for name, text in said.items()
    }
    for name, stages in ran.items():
        print(f"{name} ran: {', '.join(stages)}")
    trained = {name: [stage for stage in ran[name] if stage.startswith("train@")] for name in ran}
    if sorted(map(len, trained.values())) != [0, 1, 1] or trained["three"]:
        sys.exit("a model was not trained exactly once, by a worker of its own")
    if "report" not in ran["three"] or any("shards" in stage for stage in ran["three"]):
        sys.exit("the third machine did not assemble what was there")
    for method in METHODS:
        file = Path("reports", "results", "scenes", f"{method}.json")
        worker = next(w for w in workers if f"train@scenes-{method}" in trained[w.folder.name])
        if (worker.folder / file).read_text() != (assembled.folder / file).read_text():
            sys.exit(f"{file}: the third machine has other numbers")
    print("the report has the numbers of the workers")


if __name__ == "__main__":
    main()
