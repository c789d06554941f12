"""Clones of this checkout on a tiny `scenes`, which stand for machines or for users."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml

ROOT = Path(__file__).parents[1]
METHODS = ("vsepp", "cora")
TINY = {
    "params.yaml": {
        "datasets": ["scenes"],
        "presets": list(METHODS),
        "features": ["lite0"],
        "sources.scenes.train": 48,
        "sources.scenes.validation": 16,
        "sources.scenes.test": 16,
        "shards.images_per_shard": 16,
    },
    **{
        f"presets/scenes/{method}.yaml": {"training.epochs": 4, "training.images_per_batch": 16}
        for method in METHODS
    },
}


@dataclass(frozen=True)
class Machine:
    """A clone in which commands run with the sources of that clone, and these `settings`."""

    folder: Path
    settings: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "src"),
            "PREFECT_HOME": str(self.folder / ".prefect"),
        }
        return os.environ | own | self.settings

    def run(self, *command: str) -> str:
        """What the command printed; it must succeed."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, text=True, capture_output=True
        )
        if done.returncode:
            sys.exit(f"{self.folder.name}: {' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

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

    def commit(self, message: str) -> None:
        self.run(
            "git", "-c", "user.name=one", "-c", "user.email=one@host", "commit", "-qam", message
        )


def clone(folder: Path, **settings: str) -> Machine:
    """A clone of this checkout in `folder`, made tiny, with nothing run; its environment."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    for file, changes in TINY.items():
        edit(folder / file, changes)
    machine = Machine(folder, settings)
    machine.run("git", "rm", "-q", "dvc.lock")
    machine.commit("A tiny project")
    return machine


def edit(path: Path, changes: dict[str, Any]) -> None:
    """Set dotted keys of a YAML file."""
    value = yaml.safe_load(path.read_text())
    for key, setting in changes.items():
        *groups, last = key.split(".")
        group = value
        for name in groups:
            group = group[name]
        group[last] = setting
    path.write_text(yaml.safe_dump(value, sort_keys=False))


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - started:.0f} s", flush=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str) -> None:
    """Until a server answers there."""
    deadline = time.monotonic() + 120
    while True:
        with contextlib.suppress(OSError):
            urlopen(url).close()
            return
        if time.monotonic() > deadline:
            sys.exit(f"no answer from {url}")
        time.sleep(0.5)
