"""The processes of a training on several devices of this host.

The first process is the command itself. It starts one helper for each further device. A helper only
trains: it holds no lock, prints nothing, writes nothing, and ends with the first process. Under
`torchrun`, which starts all processes itself, there are no helpers.
"""

import contextlib
import multiprocessing
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from lightning_fabric.plugins.environments import LightningEnvironment
from torch import distributed

from manymatch.util.errors import ManyMatchError
from manymatch.util.files import storage_error
from manymatch.util.interrupts import deaf_children, interrupted_by_sigterm
from manymatch.util.parent import call_when_parent_ends
from manymatch.util.progress import say

_GRACE = 10.0
"""Seconds in which the first process must end after a helper has failed. It may wait for that
helper, and no exception ends a wait of NCCL."""
_Helper = tuple[BaseProcess, Connection]
"""One helper, and the connection through which it tells its fault."""
_rank = 0
"""The number of this process among those of the training, 0 for the first; not under `torchrun`."""


class Started(LightningEnvironment):
    """Tells Fabric that all processes are started, whatever the variables of a cluster say."""

    @property
    def creates_processes_externally(self) -> bool:
        return True

    def local_rank(self) -> int:
        return _rank

    def node_rank(self) -> int:
        return 0


def first_process() -> bool:
    """Whether this process prints and writes for all processes of its training."""
    rank = os.environ["RANK"] if distributed.is_torchelastic_launched() else _rank
    return int(rank) == 0


@contextlib.contextmanager
def helped(devices: int, train: Callable[[], None]) -> Iterator[None]:
    """In the block, each device but the first has a helper, which unpickles and calls `train`, the
    training of the block, and SIGTERM is an interrupt. A helper that fails is a `ManyMatchError`.

    There is no helper with one device. Nothing happens in a helper and under `torchrun`.
    """
    if _rank or distributed.is_torchelastic_launched():
        yield
        return
    if devices == 1:
        with interrupted_by_sigterm():
            yield
        return
    with interrupted_by_sigterm(), _meeting():
        helpers: list[_Helper] = []
        ended = threading.Event()
        try:
            for rank in range(1, devices):
                helpers.append(_started(rank, train))
            threading.Thread(target=_end_with, args=(helpers, ended), daemon=True).start()
            yield
            distributed.destroy_process_group()  # a later training here has its own
        except (ManyMatchError, OSError):
            raise
        except Exception as fault:  # perhaps because the connection to a helper broke
            if cause := _failure(helpers, _GRACE / 2):
                raise cause from fault
            raise
        finally:
            ended.set()
            for process, _ in helpers:
                process.kill()
                process.join()


@contextlib.contextmanager
def _meeting() -> Iterator[None]:
    """In the block, the processes meet at a port of this host alone, which the environment names.
    PyTorch's own port would be open to the network."""
    listening = socket.create_server(("127.0.0.1", 0))
    address, port = listening.getsockname()
    options: Any = {"wait_for_workers": False, "master_listen_fd": listening.detach()}
    store = distributed.TCPStore(address, port, is_master=True, **options)
    meeting = {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the port is open already
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    before = {name: os.environ.get(name) for name in (*meeting, "WORLD_SIZE")}
    os.environ.update(meeting)
    try:
        yield
    finally:
        del store
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _started(rank: int, train: Callable[[], None]) -> _Helper:
    context = multiprocessing.get_context("spawn")
    faults, sender = context.Pipe(duplex=False)
    arguments = rank, os.getpid(), sender, train
    process: BaseProcess = context.Process(target=_help, args=arguments, daemon=False)
    with deaf_children():
        process.start()
    sender.close()
    return process, faults


def _help(rank: int, first: int, faults: Connection, train: Callable[[], None]) -> None:
    """Be a helper of the process `first`, whose faults go to that process."""
    global _rank
    _rank = rank
    call_when_parent_ends(partial(os._exit, 1), first)
    try:
        train()
    except Exception as fault:
        told: Exception = RuntimeError(f"in a helper:\n{traceback.format_exc()}")
        if isinstance(fault, ManyMatchError):
            told = fault
        elif isinstance(fault, OSError) and fault.errno is not None:
            told = storage_error(fault)
        with contextlib.suppress(OSError):
            faults.send(told)
        os._exit(1)


def _failure(helpers: Sequence[_Helper], seconds: float) -> Exception | None:
    """What ended the first helper that has failed; None if none fails within `seconds`."""
    deadline = time.monotonic() + seconds
    # The connection of a process breaks before the process has ended.
    while not (failed := [one for one in helpers if one[0].exitcode]):
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.1)
    process, faults = failed[0]
    with contextlib.suppress(EOFError, OSError):
        fault: Exception = faults.recv()
        return fault
    code = process.exitcode or 0
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return ManyMatchError(
        f"training: process {process.pid}, one of {len(helpers) + 1}, {how} (out of memory?). The "
        "same command goes on from the last checkpoint"
    )


def _end_with(helpers: Sequence[_Helper], ended: threading.Event) -> None:
    """End this process if a helper fails and the training does not end by itself."""
    while not any(process.exitcode for process, _ in helpers):
        if ended.wait(1):
            return
    if not ended.wait(_GRACE):
        say(f"error: {_failure(helpers, 0)}")
        os._exit(1)
