"""A run with overrides is a DVC experiment in a git worktree of its own.

The worktree starts as a copy of the workspace and shares DVC's cache with it. The workspace is only
read. `dvc exp run --temp` does the same, but it stashes the workspace for a moment and holds DVC's
lock until the run ends, so no other run could work at the same time.

The worktree lies in `.dvc/tmp/service`. A lock file beside it is held while its run lives; after
`kill -9` the next run or `make serve` removes the worktree.
"""

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dvc.config import Config
from dvc.repo import Repo
from dvc.repo.experiments.refs import EXPS_NAMESPACE, ExpRefInfo
from filelock import FileLock, Timeout

from manymatch.util import files
from manymatch.util.errors import ConfigError
from pipelines import process
from pipelines.settings import Tell

FOLDER = Path(".dvc", "tmp", "service")
KEPT = Path("models", ".checkpoints"), Path("models", ".experiments"), Path("data", "parts")
"""Unfinished work, from which the same run continues. It lies in the workspace."""
_AUTHOR = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "ManyMatch"), ("EMAIL", "manymatch@localhost"))
}
_SHOWN = 5
"""The most names of changed files in a line."""


@dataclass(frozen=True)
class Experiment:
    """The worktree of a run: the project's `folder` in it, the commit from which it differs, and
    the folders of the unfinished work in the workspace."""

    workspace: Path
    folder: Path
    baseline: str
    kept: tuple[Path, ...]

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which stages import the worktree's sources, also where the package
        is an editable install of the workspace."""
        paths = [str(self.folder / "src"), os.environ.get("PYTHONPATH")]
        return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def checkout(self, stages: Iterable[str]) -> None:
        """Link the outputs of stages that DVC's cache holds into the worktree."""
        options = ["--quiet", "--force", "--allow-missing"]
        code, output = process.run(["dvc", "checkout", *options, *stages])
        if code:
            raise ConfigError(f"dvc checkout: {' '.join(output[-1:])}")

    def save(self, run: str) -> str:
        """Save the finished run as an experiment of the baseline; returns the experiment's name:
        the run's with the signs that git and DVC accept, and a number if this name is taken."""
        name = re.sub(r"[^A-Za-z0-9_]+", "-", run).strip("-") or "run"
        commit = _commit(self.folder, self.baseline, f"Experiment {name}")
        with FileLock(self.workspace / FOLDER / "names.lock"):
            refs = _git("for-each-ref", "--format=%(refname)", EXPS_NAMESPACE).split()
            taken = {ref.rpartition("/")[2] for ref in refs}
            names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
            free = next(candidate for candidate in names if candidate not in taken)
            _git("update-ref", str(ExpRefInfo(self.baseline, free)), commit)
        for path in self.kept:
            files.remove(path)
        return free


@contextlib.contextmanager
def opened(key: str, tell: Tell) -> Iterator[Experiment]:
    """Make a worktree like the workspace and work in it during the block; then remove it.

    Args:
        key: the same for the same run: a run continues the unfinished work of a killed run.
        tell: receives each message.

    Raises:
        ConfigError: the workspace is not in a git repository, or the repository has no commit.
    """
    remove_left()
    workspace = Path.cwd()
    try:
        baseline = _git("rev-parse", "--verify", "--quiet", "HEAD")
    except ConfigError:
        raise ConfigError(
            "overrides: a run with overrides is a DVC experiment, which needs a git repository "
            "with a commit. Run 'git init' and 'git commit', or write the settings into the files."
        ) from None
    with Repo(str(workspace)) as repo:  # DVC makes `.dvc/.gitignore` here if it is missing
        shared = {
            **repo.config.read("local"),
            "remote": repo.config["remote"],
            "cache": {**repo.config["cache"], "dir": repo.cache.local_cache_dir},
        }
    with _claimed(key) as worktree:
        try:
            snapshot = _commit(workspace, baseline, "Workspace")
            if names := _git("diff", "--name-only", baseline, snapshot).splitlines():
                more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
                tell(
                    "the experiment includes changes of the workspace that are not committed: "
                    f"{', '.join(names[:_SHOWN])}{more}"
                )
            _git("worktree", "add", "--quiet", "--detach", str(worktree), snapshot)
            _git("reset", "--quiet", "--soft", baseline, folder=worktree)
            project = worktree / _git("rev-parse", "--show-prefix")
            with Config(str(project / ".dvc")).edit("local") as local:
                local.update(shared)
                # Else DVC would keep an index of the worktree outside of it.
                local.setdefault("core", {})["site_cache_dir"] = str(project / ".dvc/tmp/site")
            targets = tuple(workspace / path / ".overrides" / worktree.name for path in KEPT)
            for path, target in zip(KEPT, targets, strict=True):
                target.mkdir(parents=True, exist_ok=True)
                (project / path).parent.mkdir(exist_ok=True)
                (project / path).symlink_to(target)
            with contextlib.chdir(project):
                yield Experiment(workspace, project, baseline, targets)
        finally:
            _remove(worktree)


def remove_left() -> list[str]:
    """Remove the worktrees of runs that were killed; returns their names."""
    left = []
    for lock in FOLDER.glob("*.lock"):
        worktree = lock.resolve().with_suffix("")
        with contextlib.suppress(Timeout), FileLock(lock, blocking=False):
            if worktree.is_dir():
                _remove(worktree)
                left.append(worktree.name)
    return left


@contextlib.contextmanager
def _claimed(key: str) -> Iterator[Path]:
    """The folder of a new worktree, which no other run uses during the block."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        worktree = (FOLDER / f"{key}-{number}").resolve()
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(FileLock(f"{worktree}.lock", blocking=False))
            except Timeout:
                continue
            yield worktree
            return


def _remove(worktree: Path) -> None:
    files.remove(worktree)
    _git("worktree", "prune")


def _commit(folder: Path, parent: str, message: str) -> str:
    """A commit of all files in `folder` that git does not ignore. Neither the index nor the branch
    of the checkout changes, and no hook runs."""
    with tempfile.TemporaryDirectory() as temporary:
        index = Path(temporary, "index")
        own = folder / _git("rev-parse", "--git-path", "index", folder=folder)
        if own.is_file():
            # The time of the index tells git which files it must compare: a file that changed in
            # the second of the checkout looks unchanged.
            shutil.copy2(own, index)
        environment = {"GIT_INDEX_FILE": str(index)}
        _git("add", "--all", ".", folder=folder, environment=environment)
        tree = _git("write-tree", folder=folder, environment=environment)
    return _git("commit-tree", tree, "-p", parent, "-m", message, environment=_AUTHOR)


def _git(*words: str, folder: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """The output of a git command; its error is a `ConfigError`."""
    answer = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
    )
    if answer.returncode:
        raise ConfigError(f"git {words[0]}: {answer.stderr.strip().rpartition(chr(10))[2]}")
    return answer.stdout.strip()
