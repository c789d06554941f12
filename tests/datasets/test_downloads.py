"""Downloads from a scripted server: the whole file, or one line about every mirror."""

import itertools

import pytest
from scripted_server import (
    CONTENT,
    OTHER,
    PART,
    RIGHT,
    SHA,
    endless,
    file,
    head,
    leave,
    serving,
    shorten_waiting,
    slowly,
)

from manymatch.datasets.fetching.transfer import Expected, fetch
from manymatch.util.errors import ManyMatchError, SourceError
from manymatch.util.files import partial_path

LENGTH = f"Content-Length: {len(CONTENT)}"
NOTHING, BY_SHA = Expected(), Expected(sha256=SHA)
REST, END = "bytes=40000-", f"bytes={len(CONTENT)}-"


def status(code, *lines, body=()):
    return lambda request: [head("Content-Length: 0", *lines, status=f"{code} Odd"), *body]


def to(goal, body=()):
    return lambda request: itertools.chain(
        [head(f"Location: {goal}", status="302 Found")], body if body else [b""]
    )


def once_by_header(request):
    """A redirect to the same server, where the query says that the file is meant."""
    return RIGHT(request) if "goal" in request else to("/file.bin?goal")(request)


def part_of_a_part(request):
    """At most 30,000 bytes, which are said to be a part of the file."""
    start = int(request.lower().partition("range: bytes=")[2].partition("-")[0] or 0)
    part = CONTENT[start : start + 30_000]
    if not start:
        return [head(LENGTH, 'ETag: "one"'), part]
    span = f"Content-Range: bytes {start}-{start + len(part) - 1}/{len(CONTENT)}"
    length = f"Content-Length: {len(part)}"
    return [head(span, length, 'ETag: "one"', status="206 Partial Content"), part]


WHOLE = {
    "quiet": ([RIGHT], None, BY_SHA, [None]),
    "of an unknown length": ([file(CONTENT, length=False)], None, NOTHING, [None]),
    "chunks": (
        [
            lambda request: [
                head("Transfer-Encoding: chunked"),
                b"186a0\r\n" + CONTENT + b"\r\n0\r\n\r\n",
            ]
        ],
        None,
        NOTHING,
        [None],
    ),
    "busy": ([status(503), status(429), RIGHT], None, BY_SHA, [None] * 3),
    "redirect": ([once_by_header], None, BY_SHA, [None] * 2),
    "cut": (
        [file(CONTENT, cut=40_000), file(CONTENT, cut=20_000), RIGHT],
        None,
        NOTHING,
        [None, REST, "bytes=60000-"],
    ),
    "cut, without parts": ([file(CONTENT, cut=40_000), file(CONTENT, ranges=False)], None, BY_SHA,
                           [None, REST]),
    "parts of parts": ([part_of_a_part], None, NOTHING,
                       [None, "bytes=30000-", "bytes=60000-", "bytes=90000-"]),
    "resumed at its end": ([RIGHT], CONTENT, NOTHING, [END]),
    "changed": ([file(OTHER, '"two"')], PART, NOTHING, [REST]),
    "changed, unheeded": ([file(OTHER, '"two"', heeds=False)], PART, NOTHING, [REST, None]),
    "shrank": ([file(OTHER[:1000], '"two"', heeds=False)], PART, NOTHING, [REST, None]),
    "a version of other signs": (
        [file(CONTENT, '"\xe9"', cut=40_000), file(CONTENT, '"\xe9"')], None, BY_SHA, [None, REST]),
    "wrong bytes before": ([RIGHT], bytes(40_000), BY_SHA, [REST, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_the_file_arrives_whole(target, name):
    """(answers, bytes of an earlier download, what is known, ranges that are asked for)."""
    answers, left, expected, asked = WHOLE[name]
    with serving(*answers) as server:
        if left is not None:
            leave(target, server.url, left)
        fetch([server.url], target, expected, "the file")
    content = target.read_bytes()
    assert content == CONTENT or (expected is NOTHING and content in (OTHER, OTHER[:1000]))
    assert server.asked == asked and not partial_path(target).exists()


@pytest.mark.parametrize(
    ("version", "same_address", "expected", "asked"),
    [
        (None, True, NOTHING, None),
        ('"one"', False, NOTHING, None),
        ('"one"', False, BY_SHA, REST),
    ],
)
def test_bytes_of_an_unknown_version_are_used_only_with_a_checksum(
    target, version, same_address, expected, asked
):
    with serving(RIGHT) as server:
        leave(target, server.url if same_address else "http://other/file.bin", version=version)
        fetch([server.url], target, expected, "the file")
    assert target.read_bytes() == CONTENT and server.asked == [asked]


def range_of(text, body=CONTENT):
    lines = f"Content-Range: {text}", f"Content-Length: {len(body)}"
    return lambda request: [head(*lines, status="206 Part"), body]


def raw(*parts):
    return lambda request: itertools.chain(*parts)


def body_of(parts, *lines):
    return raw([head(*lines)], parts)


def byte_a_connection(request):
    """One byte from the wanted position on."""
    answer = file(CONTENT, cut=1)(request)
    return itertools.chain([next(iter(answer)), 0.005], answer)


ZEROS = endless(bytes(2**16))
CHUNKED = head("Transfer-Encoding: chunked")
FAULTS = {
    "not there": (status(404), "HTTP 404"),
    "busy for long": (status(503), "HTTP 503"),
    "a longer file": (file(CONTENT + b"x"), "expected 100000"),
    "longer, of unknown length": (file(CONTENT + bytes(2**20), length=False), "more than"),
    "shorter, of unknown length": (file(PART, length=False), "expected 100000"),
    "a web page": (body_of([CONTENT], LENGTH, "Content-Type: text/HTML; charset=x"), "web page"),
    "slow headers": (raw([b"HTTP/1.1 200 OK\r\nX: "], slowly(itertools.repeat(b"x"))), "time"),
    "slow body": (body_of(slowly(itertools.repeat(b"x")), LENGTH), "slower than"),
    "silence in the body": (file(CONTENT, cut=1000, wait=5.0), "slower than"),
    "slow chunk": (raw([CHUNKED, b"f"], slowly(itertools.repeat(b"0"))), ""),
    "a byte a connection": (byte_a_connection, "slower than"),
    "length of 6,000 digits": (body_of([CONTENT], "Content-Length: " + "9" * 6000), ""),
    "negative length": (body_of([CONTENT], "Content-Length: -5"), ""),
    "range of 6,000 digits": (range_of("bytes " + "9" * 6000 + "-5/7"), "another range"),
    "range backwards": (range_of("bytes 0-99/5"), "another range"),
    **{f"status {code}": (status(code), str(code)) for code in (202, 204)},
    "status 206": (status(206), "another range"),
    "redirect to itself": (to("/file.bin"), "redirects"),
    "redirect to a file": (to("file:///etc/passwd"), "not valid"),
    "redirect to nothing": (to("http://[/"), ""),
    "redirect of an endless body": (to("/file.bin", ZEROS), ""),
    "endless header": (raw([b"HTTP/1.1 200 OK\r\nX: "], endless(b"x")), ""),
    "endless continue": (raw(endless(b"HTTP/1.1 100 Continue\r\n\r\n")), ""),
    "endless body": (body_of(ZEROS), "more than"),
    "endless chunk": (raw([CHUNKED, b"fffffffffffffff\r\n"], ZEROS), ""),
    "endless trailer": (raw([CHUNKED, b"0\r\n"], endless(b"X: y\r\n")), ""),
    "endless gzip": (body_of(ZEROS, "Content-Encoding: gzip"), "more than"),
    "nothing": (raw(), ""),
    "down": (None, "127.0.0.1"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_one_line_and_the_next_mirror_serves_the_file(target, name, monkeypatch):
    """(answer, words of the fault)."""
    shorten_waiting(monkeypatch)
    answer, words = FAULTS[name]
    expected = Expected(len(CONTENT), SHA)
    with serving(answer or RIGHT) as server, serving(RIGHT) as mirror:
        if answer is None:
            server.close()
        with pytest.raises(ManyMatchError) as caught:
            fetch([server.url + "?key=secret"], target, expected, "the file")
        line = str(caught.value)
        assert "file" in line and words in line and "\n" not in line and len(line) < 1000
        assert "secret" not in line and not target.exists()
        fetch([server.url, mirror.url], target, expected, "the file")
    assert target.read_bytes() == CONTENT and not partial_path(target).exists()


@pytest.mark.parametrize("code", [202, 204, 206])
def test_without_a_checksum_an_odd_success_is_no_empty_file(target, code):
    with serving(status(code)) as server, pytest.raises(SourceError, match=r"HTTP|another range"):
        fetch([server.url], target, NOTHING, "the file")
    assert not target.exists()


def test_a_wrong_checksum_is_told_once_and_nothing_is_kept(target):
    with serving(RIGHT) as server, pytest.raises(SourceError) as caught:
        fetch([server.url], target, Expected(sha256="0" * 64), "the file")
    assert f"{server.url}: its sha256 is {SHA}, expected {'0' * 64}" in str(caught.value)
    assert server.asked == [None] and not list(target.parent.iterdir())
