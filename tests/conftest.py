"""Fixtures that several rooms share."""

import functools
import gc
import multiprocessing.util
import os
import shutil
import signal
from pathlib import Path

import left_processes
import long_tests
import pytest
import typer.main
import warm_commands
from filelock import FileLock
from workspace import Workspace, make_workspace, stages_run

ROOT = Path(__file__).parents[1]
LONGEST = ("service", "committed", "new_workspace", "finished")
"""The fixtures whose tests take longest. While tests of `committed` make `finished`, those of
`new_workspace` run, which do not wait for it."""
typer.main.get_command = functools.cache(typer.main.get_command)  # most of a faulty command's time
gc.disable()  # an import makes objects that stay; the search for others takes a sixth of its time


def pytest_sessionstart():
    # A shell lets commands in its background ignore interrupts, which some tests send to processes.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["DVC_NO_ANALYTICS"] = "1"  # else each `dvc` starts another process
    left_processes.end_with_this_process()


def pytest_collection_finish():
    """From now on, garbage is searched among what tests make, and not in all libraries."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Recorded tests are marked `long`. The longest files come first, so that no process of
    pytest-xdist is left with one of them."""
    long = set(long_tests.FILE.read_text().split())
    ranks = {}
    for item in items:
        if long_tests.name_of(item) in long:
            item.add_marker("long")
        used = getattr(item, "fixturenames", ())
        rank = next((n for n, name in enumerate(LONGEST) if name in used), len(LONGEST))
        rank += rank == len(LONGEST) and not item.get_closest_marker("slow")
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])


@pytest.fixture(scope="session", autouse=True)
def _no_waiting():
    """No test cuts the power, so written files need not be on the disk when a function returns.
    Processes of multiprocessing need not load their libraries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(multiprocessing.util, "spawnv_passfds", warm_commands.spawn_passing)
        yield


@pytest.fixture(scope="module")
def warm_path():
    """`dvc` and `manymatch` of this process's path, and of stages, have loaded their libraries."""
    from pipelines import process

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(warm_commands.folder()), prepend=os.pathsep)
        patch.setitem(process.OWN, "PATH", os.environ["PATH"])
        yield


@pytest.fixture
def one_thread():
    """Sums depend on how many threads share them, and a forked process can have only one."""
    from manymatch.batch.parallel_map import single_core  # torch takes a second to load

    with single_core():
        yield


@pytest.fixture(scope="session")
def root():
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def real_data():
    """Folder with the real data sets; tests on it are skipped where it is not."""
    folder = Path(os.environ.get("MANYMATCH_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data here: set MANYMATCH_DATA to the folder that holds it")
    return folder


@pytest.fixture(scope="session")
def new_workspace(root, tmp_path_factory):
    """Make fresh tiny workspaces."""

    def make():
        return make_workspace(root, tmp_path_factory.mktemp("workspace"))

    return make


@pytest.fixture(scope="session")
def finished(root, tmp_path_factory):
    """A workspace after one undisturbed `dvc repro`, committed.

    All processes of pytest-xdist share the run; each has a copy.
    """
    made = tmp_path_factory.getbasetemp() / "finished"
    if "PYTEST_XDIST_WORKER" in os.environ:
        made = made.parents[1] / made.name
    with FileLock(f"{made}.lock"):
        if not made.exists():
            working = tmp_path_factory.mktemp("working")
            workspace = make_workspace(root, working)
            assert len(stages_run(workspace.run("dvc", "repro"))) == 11
            workspace.commit("Results")
            working.rename(made)
    return Workspace(shutil.copytree(made, tmp_path_factory.mktemp("finished") / "workspace"))
