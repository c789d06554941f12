"""DVC's stages: their names, their order, their needs and outputs."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
from dvc.exceptions import DvcException, PrettyDvcException
from dvc.lock import LockError
from dvc.repo import Repo
from dvc.stage.cache import RunCacheNotFoundError, RunCacheNotSupported

from manymatch.util.errors import ConfigError, ManyMatchError


class RemoteFailed(ManyMatchError):
    """DVC's remote cannot be reached or read."""


@dataclass(frozen=True)
class Stage:
    """One stage of dvc.yaml: its name in DVC (`train@scenes-cora`), its command, the stages whose
    outputs it reads, and its outputs relative to the checkout."""

    name: str
    command: str
    needs: tuple[str, ...]
    outs: tuple[Path, ...]

    @property
    def kind(self) -> str:
        """The name without the entry of the matrix: `train`."""
        return self.name.partition("@")[0]


@dataclass(frozen=True)
class Graph:
    """All stages of the checkout `root`; every stage stands after the stages that it needs."""

    root: Path
    stages: tuple[Stage, ...]

    def writing(self, *paths: Path) -> list[Stage]:
        """The stages that write to any of `paths`, or below."""
        return [
            stage
            for stage in self.stages
            if any(out.is_relative_to(path) for out in stage.outs for path in paths)
        ]

    def making(self, *paths: Path) -> list[Stage]:
        """The stages that write to any of `paths`, and all that they need, in DVC's order."""
        names = {stage.name for stage in self.writing(*paths)}
        for stage in reversed(self.stages):
            if stage.name in names:
                names.update(stage.needs)
        return [stage for stage in self.stages if stage.name in names]


@contextlib.contextmanager
def locked(root: Path) -> Iterator[Repo]:
    """Hold DVC's lock of the checkout `root` during the block, after waiting for the lock.

    DVC writes `dvc.lock` in place, so a reader without the lock may see half of the file.
    """
    with Repo(str(root), _wait_for_lock=True) as repo, repo.lock:
        yield repo


def read_graph(root: Path) -> Graph:
    """DVC's own graph of the checkout `root`; an error in dvc.yaml is a `ConfigError`."""

    def stage(node: Any) -> Stage:
        needs = tuple(need.addressing for need in graph.successors(node))
        outs = tuple(Path(out.fs_path).relative_to(root.resolve()) for out in node.outs)
        return Stage(node.addressing, node.cmd, needs, outs)

    try:
        with locked(root) as repo:
            graph = repo.index.graph
            # Edges lead from a stage to what it needs; `dvc repro` takes this same order.
            return Graph(root, tuple(map(stage, nx.dfs_postorder_nodes(graph))))
    except DvcException as error:
        # Only DVC's own commands show the errors in the file's form.
        hint = "; 'dvc status' shows them" if isinstance(error, PrettyDvcException) else ""
        raise ConfigError(f"dvc.yaml: {' '.join(str(error).split())}{hint}") from None


def is_unchanged(root: Path, name: str) -> bool:
    """Whether the stage has nothing to do; known even while other processes read its outputs."""
    try:
        with locked(root) as repo:
            (stage,) = repo.stage.collect(name)
            return not stage.changed()
    except DvcException:
        return False  # `dvc repro` waits, or reports the error


def is_made(root: Path, name: str, pull: bool) -> bool:
    """Whether the stage's outputs are made, or another process is making them.

    Outputs of an earlier run with the same inputs are put into the checkout.

    Args:
        root: the checkout.
        name: the stage.
        pull: search DVC's default remote too, not only the cache of this machine.

    Raises:
        RemoteFailed: the remote cannot be reached or read.
    """
    try:
        with locked(root) as repo:
            (stage,) = repo.stage.collect(name)
            if not stage.changed():
                return True
            if pull:
                _pull(repo, stage)
            else:
                repo.stage_cache.restore(stage)
            return True
    except RunCacheNotFoundError:
        return False
    except LockError:
        return True
    except DvcException as error:
        raise ConfigError(f"{name}: {' '.join(str(error).split())}") from None


def _pull(repo: Repo, stage: object) -> None:
    """Take the run cache from the remote, and the outputs of `stage` if the cache has them."""
    try:
        remote = repo.cloud.get_remote()
        with contextlib.suppress(FileNotFoundError):  # nothing was pushed yet
            remote.fs.info(remote.path)  # DVC treats a remote that does not answer as empty
        with contextlib.suppress(RunCacheNotSupported):  # an HTTP remote holds only outputs
            repo.stage_cache.pull(None)
        repo.stage_cache.restore(stage, pull=True)
    except (RunCacheNotFoundError, LockError):
        raise
    except Exception as error:  # every kind of storage has its own errors
        raise RemoteFailed(f"DVC's remote: {' '.join(str(error).split())}") from None
