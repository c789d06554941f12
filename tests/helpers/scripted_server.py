"""A server on this machine that answers each connection as a script says, with any bytes in any
time."""

import contextlib
import hashlib
import itertools
import json
import random
import re
import socket
import threading

from manymatch.datasets.fetching import disk, http, transfer
from manymatch.util.files import partial_path


class Server:
    """`answers`: of the next connections; the last answer is repeated. `asked`: the header `Range`
    of each request, or None."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.closed = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/file.bin"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError), connection:
            request = connection.recv(2**16).decode("latin-1")
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.asked.append(header(request, "Range"))
            for part in answer(request):
                if self.closed.is_set():
                    return
                if isinstance(part, float):
                    self.closed.wait(part)
                else:
                    connection.sendall(part)

    def close(self):
        self.closed.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextlib.contextmanager
def serving(*answers):
    """A running server."""
    server = Server(*answers)
    try:
        yield server
    finally:
        server.close()


def header(request, name):
    """A header of a request."""
    found = re.search(rf"^{name}: (.*?)\r$", request, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else None


def head(*lines, status="200 OK"):
    """The status line and headers of an answer."""
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("latin-1")


def file(content, etag='"one"', ranges=True, heeds=True, length=True, cut=None, wait=0.0):
    """A server of a file.

    Args:
        ranges: whether parts are served.
        heeds: whether If-Range counts.
        length: whether the length is told.
        cut: the bytes after which the connection ends.
        wait: seconds before the connection ends.
    """

    def answer(request):
        asked = header(request, "Range") if ranges else None
        if heeds and header(request, "If-Range") not in (None, etag):
            asked = None
        start = int(asked[6:-1]) if asked else 0
        lines = [f"ETag: {etag}"] if etag else []
        if start and start >= len(content):
            lines += [f"Content-Range: bytes */{len(content)}", "Content-Length: 0"]
            yield head(*lines, status="416 Range Not Satisfiable")
            return
        if length:
            lines.append(f"Content-Length: {len(content) - start}")
        if asked:
            lines.append(f"Content-Range: bytes {start}-{len(content) - 1}/{len(content)}")
        yield head(*lines, status="206 Partial Content" if asked else "200 OK")
        yield content[start:][:cut]
        yield wait

    return answer


def slowly(parts, pause=0.02):
    """Parts with a pause before each."""
    for part in parts:
        yield pause
        yield part


def endless(part):
    """`part` again and again, in blocks."""
    return itertools.repeat(part * max(1, 2**16 // len(part)))


def shorten_waiting(monkeypatch):
    """Short windows, deadlines and pauses, and a disk with room for two mebibytes."""
    monkeypatch.setattr(http, "WINDOW", 0.5)
    monkeypatch.setattr(http, "DEADLINE", 1.2)
    monkeypatch.setattr(http, "LEAST_SPEED", 20_000)
    monkeypatch.setattr(transfer, "_PAUSES", (0.0,))
    usage = disk.shutil.disk_usage

    def small(folder):
        used = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        return usage(folder)._replace(free=disk.RESERVE + 2 * 2**20 - used)

    monkeypatch.setattr(disk.shutil, "disk_usage", small)


CONTENT = random.Random(1).randbytes(100_000)
SHA = hashlib.sha256(CONTENT).hexdigest()
OTHER, PART = CONTENT[::-1], CONTENT[:40_000]
RIGHT = file(CONTENT)


def leave(target, url, content=PART, version='"one"'):
    """Leave what a killed download leaves."""
    target.parent.mkdir(parents=True)
    partial_path(target).write_bytes(content)
    note = {"url": url, "validator": version}
    target.with_name(f"{target.name}.json").write_text(json.dumps(note))
