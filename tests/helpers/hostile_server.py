"""A server on this machine that answers with any bytes, in any time."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from manymatch.datasets.fetching import disk, http, transfer


@contextlib.contextmanager
def hostile(answer: Any) -> Iterator[str]:
    """The address of a file. `answer(request)` yields parts of an answer; a float is a pause."""
    server = socket.create_server(("127.0.0.1", 0), backlog=100)
    closed = threading.Event()

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            request = connection.recv(2**16)
            for part in answer(request):
                if closed.is_set():
                    return
                if isinstance(part, float):
                    closed.wait(part)
                else:
                    connection.sendall(part)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/file.bin"
    finally:
        closed.set()
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()


def head(*lines: str, status: str = "200 OK") -> bytes:
    """The status line and headers of an answer."""
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("latin-1")


def slowly(parts: Iterable[bytes], pause: float = 0.02) -> Iterator[bytes | float]:
    """Parts with a pause before each."""
    for part in parts:
        yield pause
        yield part


def endless(part: bytes) -> Iterator[bytes]:
    """`part` again and again, in blocks."""
    return itertools.repeat(part * max(1, 2**16 // len(part)))


def shorten_waiting(monkeypatch: Any) -> None:
    """Short windows and pauses, and a disk with room for two mebibytes."""
    monkeypatch.setattr(http, "WINDOW", 0.3)
    monkeypatch.setattr(http, "LEAST_SPEED", 20_000)
    monkeypatch.setattr(transfer, "_PAUSES", (0.0,))
    usage = disk.shutil.disk_usage

    def small(folder: Any) -> Any:
        used = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        return usage(folder)._replace(free=disk.RESERVE + 2 * 2**20 - used)

    monkeypatch.setattr(disk.shutil, "disk_usage", small)
