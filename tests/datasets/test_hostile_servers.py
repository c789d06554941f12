"""Servers that are endless, slow or wrong: the next mirror is asked, and the fault is one line."""

import hashlib
import itertools
import random

import pytest
from hostile_server import endless, head, hostile, shorten_waiting, slowly

from manymatch.datasets.fetching import connections
from manymatch.datasets.fetching.transfer import Expected, fetch
from manymatch.util.errors import ManyMatchError

CONTENT = random.Random(1).randbytes(100_000)
EXPECTED = Expected(sha256=hashlib.sha256(CONTENT).hexdigest())
LENGTH = f"Content-Length: {len(CONTENT)}"


def right(request):
    yield head(LENGTH)
    yield CONTENT


def with_head(*lines, status="200 OK", body=(CONTENT,)):
    def answer(request):
        yield head(*lines, status=status)
        yield from body

    return answer


def byte_a_connection(request):
    """One byte from the wanted position on."""
    start = int(request.partition(b"bytes=")[2].partition(b"-")[0] or 0)
    yield head(
        f"Content-Range: bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}",
        f"Content-Length: {len(CONTENT) - start}",
        'ETag: "one"',
        status="206 Partial Content" if b"bytes=" in request else "200 OK",
    )
    yield 0.005
    yield CONTENT[start : start + 1]


def range_of(text, body=CONTENT):
    return with_head(
        f"Content-Range: {text}", f"Content-Length: {len(body)}", status="206 Part", body=(body,)
    )


def bytes_of(*parts):
    return lambda request: itertools.chain(*parts)


def redirect(goal, body=()):
    return with_head(f"Location: {goal}", status="302 Found", body=body)


ZEROS = endless(bytes(2**16))
CHUNKED = head("Transfer-Encoding: chunked")
FAULTS = {
    "slow status": bytes_of(slowly(itertools.repeat(b"H"))),
    "slow headers": bytes_of([b"HTTP/1.1 200 OK\r\nX: "], slowly(itertools.repeat(b"x"))),
    "slow body": with_head(LENGTH, body=slowly(itertools.repeat(b"x"))),
    "a byte a connection": byte_a_connection,
    "giant length": with_head("Content-Length: 1" + "0" * 30),
    "length beyond the disk": with_head("Content-Length: 1" + "0" * 14),
    "length of 6,000 digits": with_head("Content-Length: " + "9" * 6000),
    "negative length": with_head("Content-Length: -5"),
    "length of letters": with_head("Content-Length: many"),
    "range of letters": range_of("bytes all/most"),
    "range of 6,000 digits": range_of("bytes " + "9" * 6000 + "-5/7"),
    "range backwards": range_of("bytes 0-99/5"),
    "a file shorter than its part": range_of("bytes 0-9/10"),
    **{
        f"status {code}": with_head("Content-Length: 0", status=f"{code} Odd", body=())
        for code in (201, 202, 204, 205, 206, 207)
    },
    "status 203": with_head(LENGTH, status="203 Non-Authoritative Information"),
    "redirect to itself": redirect("/file.bin"),
    "redirects without end": lambda request: redirect(f"/{random.random()}")(request),
    "redirect to a file": redirect("file:///etc/passwd"),
    "redirect to ftp": redirect("ftp://127.0.0.1/file.bin"),
    "redirect to nothing": redirect("http://[/"),
    "redirect of an endless body": redirect("/file.bin", body=ZEROS),
    "endless header": bytes_of([b"HTTP/1.1 200 OK\r\nX: "], endless(b"x")),
    "endless headers": bytes_of([b"HTTP/1.1 200 OK\r\n"], endless(b"X: y\r\n")),
    "endless continue": bytes_of(endless(b"HTTP/1.1 100 Continue\r\n\r\n")),
    "endless reason": bytes_of([b"HTTP/1.1 404 "], endless(b"x")),
    "endless body": with_head(body=ZEROS),
    "endless chunks": bytes_of([CHUNKED], endless(b"1000\r\n" + bytes(4096) + b"\r\n")),
    "endless chunk": bytes_of([CHUNKED, b"fffffffffffffff\r\n"], ZEROS),
    "endless trailer": bytes_of([CHUNKED, b"0\r\n"], endless(b"X: y\r\n")),
    "endless gzip": with_head("Content-Encoding: gzip", body=ZEROS),
    "no HTTP": bytes_of(ZEROS),
    "nothing": bytes_of(),
}


@pytest.fixture
def target(tmp_path, monkeypatch):
    shorten_waiting(monkeypatch)
    return tmp_path / "waiting" / "file.bin"


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_one_line_and_the_next_mirror_serves_the_file(target, name):
    with hostile(FAULTS[name]) as url, hostile(right) as mirror:
        with pytest.raises(ManyMatchError) as caught:
            fetch([url], target, EXPECTED, "the file")
        line = str(caught.value)
        assert "file" in line and "\n" not in line and len(line) < 1000 and not target.exists()
        fetch([url, mirror], target, EXPECTED, "the file")
    assert target.read_bytes() == CONTENT and not list(target.parent.glob("*.partial"))


@pytest.mark.parametrize("code", [201, 202, 203, 204, 205, 206])
def test_without_a_checksum_an_odd_success_is_no_empty_file(target, code):
    answer = with_head("Content-Length: 0", status=f"{code} Odd", body=())
    with hostile(answer) as url, pytest.raises(ManyMatchError, match=rf"HTTP {code}|another range"):
        fetch([url], target, Expected(), "the file")
    assert not target.exists()


def test_a_byte_a_connection_is_too_slow_for_pieces(target, monkeypatch):
    monkeypatch.setattr(connections, "PIECE", 10_000)

    def answer(request):
        yield head("Accept-Ranges: bytes", LENGTH, 'ETag: "one"')

    def answers(request):
        return byte_a_connection(request) if b"bytes=" in request else answer(request)

    with hostile(answers) as url, hostile(right) as mirror:
        fetch([url, mirror], target, EXPECTED, "the file", connections=4)
    assert target.read_bytes() == CONTENT


def test_a_part_that_ends_before_the_file_is_not_the_whole_file(target):
    """Without a checksum nothing else shows that the rest is missing."""

    def answer(request):
        start = int(request.partition(b"bytes=")[2].partition(b"-")[0] or 0)
        part = CONTENT[start : start + 30_000]
        whole = "bytes=" not in request.decode()
        if whole:
            yield head(LENGTH, 'ETag: "one"')
            yield part
            return
        span = f"bytes {start}-{start + len(part) - 1}/{len(CONTENT)}"
        lines = f"Content-Range: {span}", f"Content-Length: {len(part)}", 'ETag: "one"'
        yield head(*lines, status="206 Partial Content")
        yield part

    with hostile(answer) as url:
        fetch([url], target, Expected(), "the file")
    assert target.read_bytes() == CONTENT
