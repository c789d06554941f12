"""The stages as DVC has them: their names, their order, what each needs and writes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
from dvc.exceptions import DvcException, PrettyDvcException
from dvc.lock import LockError
from dvc.repo import Repo
from dvc.stage.cache import RunCacheNotFoundError, RunCacheNotSupported

from manymatch.system.errors import ConfigError, ManyMatchError


class RemoteFailed(ManyMatchError):
    """A remote of DVC that cannot be reached, or not be read."""


@dataclass(frozen=True)
class Stage:
    """One stage of dvc.yaml: its addressing (`train@scenes-cora`), its command, the stages whose
    outputs it reads, and its outputs, relative to the checkout."""

    name: str
    command: str
    needs: tuple[str, ...]
    outs: tuple[Path, ...]

    @property
    def kind(self) -> str:
        """Its name without the entry of the matrix: `train`."""
        return self.name.partition("@")[0]

    def writes(self, place: Path) -> bool:
        """Whether an output is `place` or lies in it."""
        return any(out.is_relative_to(place) for out in self.outs)


@dataclass(frozen=True)
class Graph:
    """All stages of the checkout `root`, each behind those that it needs."""

    root: Path
    stages: tuple[Stage, ...]

    def writing(self, *places: Path) -> list[Stage]:
        """The stages that write to any of `places`."""
        return [stage for stage in self.stages if any(map(stage.writes, places))]

    def with_needs(self, wanted: Iterable[Stage]) -> list[Stage]:
        """`wanted` and everything before them, in DVC's order."""
        names = {stage.name for stage in wanted}
        for stage in reversed(self.stages):
            if stage.name in names:
                names.update(stage.needs)
        return [stage for stage in self.stages if stage.name in names]


def read_graph(root: Path) -> Graph:
    """DVC's own graph of the checkout `root`; a fault in dvc.yaml is a `ConfigError`."""
    try:
        with Repo(str(root)) as repo:
            graph = repo.index.graph
            # Edges lead from a stage to what it needs; `dvc repro` takes this same order.
            ordered = list(nx.dfs_postorder_nodes(graph))
            return Graph(root, tuple(_stage(node, graph.successors, root) for node in ordered))
    except DvcException as error:
        # What is wrong with the file's form, DVC's own commands alone show.
        hint = "; 'dvc status' shows them" if isinstance(error, PrettyDvcException) else ""
        raise ConfigError(f"dvc.yaml: {' '.join(str(error).split())}{hint}") from None


def is_made(root: Path, name: str, pull: bool) -> bool:
    """Whether the stage's outputs are up to date, or DVC has them from an earlier run with the same
    inputs, here or (`pull`) in its default remote: it then puts them in their places. So too if
    another process is about to make them.

    Raises:
        RemoteFailed: the remote cannot be reached, or not be read.
    """
    try:
        with Repo(str(root), _wait_for_lock=True) as repo, repo.lock:
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
    """Take from the remote what stages ran with, and the outputs if `stage` is among them."""
    try:
        remote = repo.cloud.get_remote()
        with contextlib.suppress(FileNotFoundError):  # nothing was pushed yet
            remote.fs.info(remote.path)  # DVC takes a remote that does not answer for an empty one
        with contextlib.suppress(RunCacheNotSupported):  # over HTTP: it has outputs alone
            repo.stage_cache.pull(None)
        repo.stage_cache.restore(stage, pull=True)
    except (RunCacheNotFoundError, LockError):
        raise
    except Exception as error:  # each kind of storage has its own
        raise RemoteFailed(f"DVC's remote: {' '.join(str(error).split())}") from None


def _stage(node: object, needs: Callable[..., Iterable[object]], root: Path) -> Stage:
    before = tuple(each.addressing for each in needs(node))  # type: ignore[attr-defined]
    outs = tuple(
        Path(out.fs_path).relative_to(root.resolve())
        for out in node.outs  # type: ignore[attr-defined]
    )
    return Stage(node.addressing, node.cmd, before, outs)  # type: ignore[attr-defined]
