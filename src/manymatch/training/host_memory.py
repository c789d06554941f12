"""Memory that the processes of a training on one host share."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed

from manymatch.batch.shared_rows import world_size

SHARED = hasattr(os, "memfd_create")
"""Whether processes can share memory without a name; on Linux."""


def all_of(value: Any) -> list[Any]:
    """The `value` of each process of the training; all call this together."""
    if world_size() == 1:
        return [value]
    values: list[Any] = [None] * world_size()
    distributed.all_gather_object(values, value)
    return values


def host_tensor(shape: Sequence[int], kind: torch.dtype) -> tuple[Tensor, bool]:
    """Zeros that all processes of this host share, and whether this process is to fill them.

    All processes of the training call this together. The memory has no name in the file system, so
    it ends with the processes, also after a kill.
    """
    count = math.prod(shape)
    own = os.memfd_create("features")
    try:
        os.truncate(own, count * kind.itemsize)
        host = socket.gethostname(), Path("/proc/self/ns/pid").stat().st_ino
        places = all_of((*host, os.getpid(), own))
        first = next(place for place in places if place[:2] == host)
        path = f"/proc/{first[2]}/fd/{first[3]}"
        tensor = torch.from_file(path, shared=True, size=count, dtype=kind).view(*shape)
        all_of(None)  # until here the first process keeps its file open
    finally:
        os.close(own)
    return tensor, first[2] == os.getpid()
