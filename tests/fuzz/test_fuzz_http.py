"""Damaged and hostile answers of a server: the right file, or a `ManyMatchError`."""

import hashlib
import random
import tempfile
from pathlib import Path

import pytest
from hostile_server import head, hostile, shorten_waiting
from hypothesis import given
from hypothesis import strategies as st
from mutations import mutated

from manymatch.datasets.fetching import connections
from manymatch.datasets.fetching.transfer import Expected, fetch
from manymatch.util.errors import ManyMatchError

CONTENT = random.Random(2).randbytes(3000)
LENGTH = f"Content-Length: {len(CONTENT)}"
SHA = hashlib.sha256(CONTENT).hexdigest()
RANGE = f"Content-Range: bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}"
ANSWERS = [
    head(LENGTH, 'ETag: "one"', "Accept-Ranges: bytes") + CONTENT,
    head(LENGTH, RANGE, status="206 Partial Content") + CONTENT,
    head("Transfer-Encoding: chunked") + b"bb8\r\n" + CONTENT + b"\r\n0\r\nX: y\r\n\r\n",
    head() + CONTENT,
    head("Location: /other", status="302 Found"),
    head("Location: file:///etc/passwd", status="307 Temporary Redirect"),
    head("Content-Type: text/html; charset=\xff") + b"<html>",
    head(f"Content-Range: bytes */{len(CONTENT)}", status="416 Range Not Satisfiable"),
    head("Content-Length: " + "9" * 6000),
    b"HTTP/1.1 100 Continue\r\n\r\n" * 20 + head(LENGTH) + CONTENT,
    head("Retry-After: 1", status="503 \x1b[2J\x07"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("many", [1, 4])
@pytest.mark.parametrize("known", [True, False])
def test_any_answer_gives_the_right_file_or_a_fault(many, known, limits, monkeypatch):
    shorten_waiting(monkeypatch)
    monkeypatch.setattr(connections, "PIECE", 1000)
    expected = Expected(sha256=SHA) if known else Expected(size=len(CONTENT))
    queue: list[bytes] = []

    @given(st.lists(mutated(ANSWERS, 3), min_size=1, max_size=4))
    def check(answers):
        queue[:] = answers
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "waiting" / "file.bin"
            try:
                with limits():
                    fetch([url], target, expected, "the file", connections=many)
            except ManyMatchError:
                assert not target.exists()
            else:
                assert len(target.read_bytes()) == len(CONTENT)
                assert not known or target.read_bytes() == CONTENT

    with hostile(lambda request: [queue.pop() if len(queue) > 1 else queue[0]]) as url:
        check()
