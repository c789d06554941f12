"""A checkout in a temporary folder, and how to run, kill and read it."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import warm_commands
import yaml

_IMAGES = {"train": 48, "validation": 16, "test": 16}
_SMALL_MODEL = {"training.epochs": 2, "training.images_per_batch": 16}
_CONFIGURED = ("dvc.yaml", "params.yaml", ".dvcignore", ".gitignore", "presets", "experiments")
_COPIED = (*_CONFIGURED, "judgments", "src", "README.md")
_IN_ONE_PROCESS = """
import shlex, sys
from manymatch.cli.commands import app
for command in sys.argv[1:]:
    program, *words = shlex.split(command)
    assert program == "manymatch", command
    print(f"> {command}", flush=True)
    app(words, standalone_mode=False)
"""


@dataclass
class Workspace:
    """A git repository in which `dvc` and `manymatch` run as a user would run them."""

    folder: Path
    own_sources: bool = False

    @property
    def environment(self):
        programs = Path(sys.executable).parent if self.own_sources else warm_commands.folder()
        path = (
            f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        )
        own = {"PYTHONPATH": str(self.folder / "src")} if self.own_sources else {}
        return {**os.environ, **own, "PATH": path, "PYTHONUNBUFFERED": "1"}

    def use_own_sources(self):
        """The same, but commands run the copied `src`, so that a test may change it. They are not
        warm."""
        return replace(self, own_sources=True)

    def clone(self, folder):
        """What git has of this workspace, in `folder`: no data and no models."""
        self.run("git", "clone", "-q", ".", str(folder))
        return Workspace(folder)

    def copy_data_from(self, other):
        shutil.copytree(other.folder / "data", self.folder / "data")

    def start(self, *command):
        """The command in a process group of its own, output merged."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *command, code=0):
        """Everything the command printed; the test fails if it exits otherwise than expected."""
        process = self.start(*command)
        output, _ = process.communicate(timeout=900)
        assert process.returncode == code, f"{command} exited {process.returncode}:\n{output}"
        return output

    def run_all(self, *commands):
        """The output of several commands, with a line `> COMMAND` before that of each command.
        Commands of own sources run in one process, which loads the libraries once."""
        if self.own_sources:
            return self.run("python", "-c", _IN_ONE_PROCESS, *commands)
        return "".join(f"> {line}\n{self.run(*shlex.split(line))}" for line in commands)

    def processes(self, *words):
        """Those that work in this folder or below with all these words as arguments. The process
        that does the work of a warm command is one of them, and not its script."""
        found = []
        for process in psutil.process_iter(["cmdline", "cwd"]):
            arguments = {part.rpartition("/")[2] for part in process.info["cmdline"] or ()}
            here = Path(process.info["cwd"] or "/").is_relative_to(self.folder)
            if here and set(words) <= arguments and "-IS" not in arguments:
                found.append(process)
        return found

    def edit(self, file, changes):
        """Set dotted keys of a YAML file."""
        path = self.folder / file
        value = yaml.safe_load(path.read_text())
        for key, setting in changes.items():
            *groups, last = key.split(".")
            group = value
            for name in groups:
                group = group.setdefault(name, {})
            group[last] = setting
        path.write_text(yaml.safe_dump(value, sort_keys=False))

    def results(self):
        """Every metric file's text, by path."""
        files = sorted((self.folder / "reports" / "metrics").rglob("*.json"))
        return {str(path.relative_to(self.folder)): path.read_text() for path in files}

    def commit(self, message):
        self.run("git", "add", "-A")
        self.run("git", "-c", "user.name=T", "-c", "user.email=t@t", "commit", "-qm", message)


def make_workspace(root, folder):
    """A tiny pipeline in the empty `folder`, committed: the checkout `root` with small settings."""
    for name in _COPIED:
        source, target = root / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (folder / ".dvc").mkdir()
    for kept in (root / "reports").glob("*/.gitkeep"):
        (folder / "reports" / kept.parent.name).mkdir(parents=True)
        (folder / "reports" / kept.parent.name / ".gitkeep").touch()
    for name in ("config", ".gitignore"):
        shutil.copy(root / ".dvc" / name, folder / ".dvc" / name)
    workspace = Workspace(folder)
    workspace.run("git", "init", "-q")
    runs = {"datasets": ["scenes"], "presets": ["vsepp", "cora"], "features": ["lite0"]}
    workspace.edit("params.yaml", {**runs, "ensembles": [], "experiments": {}})
    workspace.edit("params.yaml", {f"sources.scenes.{key}": n for key, n in _IMAGES.items()})
    workspace.edit("params.yaml", {"shards.images_per_shard": 16, "evaluation.samples": 3})
    for preset in ("vsepp", "cora"):
        workspace.edit(f"presets/scenes/{preset}.yaml", _SMALL_MODEL)
    workspace.commit("Start")
    return workspace


def kill(process, workspace):
    """`kill -9` of the whole group, DVC, the stage and its workers, until none of it is left: on a
    busy machine a process may hold DVC's lock for a while yet."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    psutil.wait_procs(workspace.processes(), timeout=60)


def stages_run(output):
    """The stages that `dvc repro` ran, in order."""
    marker = "Running stage '"
    lines = (line for line in output.splitlines() if line.startswith(marker))
    return [line.removeprefix(marker).split("'")[0] for line in lines]
