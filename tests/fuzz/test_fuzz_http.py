"""Damaged and hostile answers of a server: the right file, or a `ManyMatchError`."""

import hashlib
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutations import mutated
from scripted_server import head, serving, shorten_waiting

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
@pytest.mark.parametrize("expected", [Expected(sha256=SHA), Expected(size=len(CONTENT))])
def test_any_answer_gives_the_right_file_or_a_fault(expected, limits, monkeypatch):
    shorten_waiting(monkeypatch)

    @given(st.lists(mutated(ANSWERS, 3), min_size=1, max_size=4))
    def check(answers):
        server.answers = [lambda request, answer=answer: [answer] for answer in answers]
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "waiting" / "file.bin"
            try:
                with limits():
                    fetch([server.url], target, expected, "the file")
            except ManyMatchError:
                assert not target.exists()
            else:
                assert len(target.read_bytes()) == len(CONTENT)
                assert expected.sha256 is None or target.read_bytes() == CONTENT

    with serving(lambda request: []) as server:
        check()
