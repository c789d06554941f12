"""Downloads from a server on this machine that cuts connections, refuses ranges, or lies."""

import contextlib
import hashlib
import json
import multiprocessing
import random
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from full_disk import error_on_full_disk

from manymatch.datasets.fetching import connections as parallel
from manymatch.datasets.fetching import disk, transfer
from manymatch.datasets.fetching.transfer import Expected, fetch
from manymatch.util import files
from manymatch.util.errors import DataError, SourceError, StorageError

CONTENT = random.Random(1).randbytes(300_000)
SHA = hashlib.sha256(CONTENT).hexdigest()


def span(header):
    """First byte and the byte after the last of a Range header."""
    first, last = header.removeprefix("bytes=").split("-")
    return int(first), int(last) + 1 if last else None


class Server:
    """A file `/file.bin` and the faults with which it is served."""

    def __init__(self):
        self.content = CONTENT
        self.etag = '"one"'
        self.new_etags = None  # of which each answer has the next
        self.ranges = True
        self.tells_length = True
        self.heeds_if_range = True
        self.cuts = []  # bytes after which the next connections are cut
        self.codes = []  # status codes of the next answers, before any content
        self.redirect = None
        self.accepts_ranges = False  # whether it says so
        self.kind = None  # Content-Type
        self.at_once = 100  # more connections than these are told to come back later
        self.two_at_once, self.refused = threading.Event(), threading.Event()
        self.awaited = None  # one of these, without which nobody is served
        self._now = self._parts = 0
        self._lock = threading.Lock()
        self.goes_on = threading.Event()  # else the connection hangs after its last byte
        self.goes_on.set()
        self.asked = []  # Range headers, None where there was none
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._http.server_port}/file.bin"

    def close(self):
        self._http.shutdown()
        self._http.server_close()

    def enter(self, is_part):
        with self._lock:
            if self._now >= self.at_once:
                self.refused.set()
                return False
            self._now += 1
            self._parts += is_part
            if self._parts == 2:
                self.two_at_once.set()
            return True

    def leave(self, is_part):
        with self._lock:
            self._now -= 1
            self._parts -= is_part

    def _handler(server):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                is_part = "Range" in self.headers
                if not server.enter(is_part):
                    return self.send_error(503)
                try:
                    return server.answer(self)
                finally:
                    server.leave(is_part)

        return Handler

    def answer(self, http):
        asked = http.headers.get("Range")
        self.asked.append(asked)
        if self.awaited and asked:
            assert self.awaited.wait(20)
        code = self.codes.pop(0) if self.codes else 0
        if code:
            return http.send_error(code)
        if self.redirect and "goal" not in http.path:
            http.send_response(302)
            http.send_header("Location", self.redirect)
            return http.end_headers()
        fresh = self.heeds_if_range and http.headers.get("If-Range") not in (None, self.etag)
        partly = bool(asked) and self.ranges and not fresh
        start, end = span(asked) if partly else (0, None)
        if start and start >= len(self.content):
            http.send_response(416)
            http.send_header("Content-Range", f"bytes */{len(self.content)}")
            http.send_header("Content-Length", "0")
            return http.end_headers()
        body = self.content[start:end]
        http.send_response(206 if partly else 200)
        if self.accepts_ranges:
            http.send_header("Accept-Ranges", "bytes")
        if self.kind:
            http.send_header("Content-Type", self.kind)
        if partly:
            last = start + len(body) - 1
            http.send_header("Content-Range", f"bytes {start}-{last}/{len(self.content)}")
        if self.tells_length:
            http.send_header("Content-Length", str(len(body)))
        if self.new_etags:
            self.etag = next(self.new_etags)
        if self.etag:
            http.send_header("ETag", self.etag)
        http.end_headers()
        with contextlib.suppress(OSError):  # the other side may have had enough
            http.wfile.write(body[: self.cuts.pop(0)] if self.cuts else body)
            http.wfile.flush()
        self.goes_on.wait(30)
        return None


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(transfer, "_PAUSES", (0, 0))
    server = Server()
    yield server
    server.close()


@pytest.fixture
def mirror(server):
    mirror = Server()
    yield mirror
    mirror.close()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "waiting" / "file.bin"


def down(server):
    """The address of a server that is no more."""
    server.close()
    return server.url


def fault(urls, target, expected=Expected()):  # noqa: B008
    with pytest.raises(SourceError) as caught:
        fetch(urls, target, expected, "the file")
    assert not target.exists()
    assert str(caught.value).startswith("the file: ") and "\n" not in str(caught.value)
    return str(caught.value)


def partial(target):
    return target.with_name("file.bin.partial")


def leave_partial(server, target, left=CONTENT[:100_000]):
    """Leave what a killed process leaves."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial(target).write_bytes(left)
    note = {"url": server.url, "validator": server.etag}
    target.with_name("file.bin.json").write_text(json.dumps(note))


@pytest.mark.parametrize(
    ("behaviour", "asked"),
    [
        ({}, [None]),
        ({"cuts": [100_000, 50_000]}, [None, "bytes=100000-", "bytes=150000-"]),
        ({"cuts": [100_000, 200_000], "ranges": False}, [None, "bytes=100000-", "bytes=200000-"]),
        ({"codes": [503, 429]}, [None, None, None]),
    ],
    ids=["quiet", "cut", "cut, without ranges", "busy"],
)
def test_a_file_arrives_whole_whatever_the_server_does(server, target, behaviour, asked):
    vars(server).update(behaviour)
    fetch([server.url], target, Expected(len(CONTENT), SHA), "the file")
    assert target.read_bytes() == CONTENT and not partial(target).exists()
    assert server.asked == asked


def test_a_process_killed_in_the_middle_loses_nothing(server, target):
    server.goes_on.clear()
    server.cuts = [200_000]
    work = ([server.url], target, Expected(), "the file")
    process = multiprocessing.get_context("fork").Process(target=fetch, args=work)
    process.start()
    while not (partial(target).exists() and partial(target).stat().st_size >= 2**17):
        assert process.is_alive()
        time.sleep(0.01)
    process.kill()
    process.join()
    server.goes_on.set()
    kept = partial(target).stat().st_size
    fetch([server.url], target, Expected(), "the file")
    assert target.read_bytes() == CONTENT and server.asked == [None, f"bytes={kept}-"]


REST, ALL = "bytes=100000-", f"bytes={len(CONTENT)}-"
CHANGED, UNHEEDED = {"content": CONTENT[::-1], "etag": '"two"'}, {"heeds_if_range": False}


@pytest.mark.parametrize(
    ("left", "changes", "sha256", "asked"),
    [
        (CONTENT[:100_000], {}, None, [REST]),
        (CONTENT, {}, None, [ALL]),
        (CONTENT[:100_000], CHANGED, None, [REST]),
        (CONTENT[:100_000], {**CHANGED, **UNHEEDED}, None, [REST, None]),
        (CONTENT[:100_000], {"content": CONTENT[:1000], **UNHEEDED}, None, [REST, None]),
        (bytes(100_000), {}, SHA, [REST, None]),
    ],
    ids=["goes on", "is whole", "changed", "changed, unheeded", "shrank", "wrong sum"],
)
def test_an_earlier_download_goes_on_unless_the_file_changed(
    server, target, left, changes, sha256, asked
):
    leave_partial(server, target, left)
    vars(server).update(changes)
    fetch([server.url], target, Expected(sha256=sha256), "the file")
    assert target.read_bytes() == server.content and server.asked == asked


@pytest.mark.parametrize("sha256", [None, SHA])
@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_link_with_the_temporary_name_is_not_written_through(server, target, link, sha256):
    leave_partial(server, target)
    other = target.with_name("other")
    partial = files.partial_path(target)
    partial.rename(other)
    before = other.read_bytes()
    getattr(partial, link)(other)
    fetch([server.url], target, Expected(sha256=sha256), "the file")
    assert other.read_bytes() == before
    assert target.read_bytes() == CONTENT and not target.is_symlink()
    with pytest.raises(OSError, match="symbolic"):
        target.with_name("link").symlink_to(other)
        files.open_partial(target.with_name("link"))


@pytest.mark.parametrize(
    ("of_mirror", "etag", "expected", "asked"),
    [
        (False, None, Expected(), None),
        (True, '"one"', Expected(), None),
        (True, '"one"', Expected(sha256=SHA), REST),
    ],
)
def test_bytes_of_an_unknown_version_go_on_only_with_a_checksum(
    server, mirror, target, of_mirror, etag, expected, asked
):
    server.etag = etag
    leave_partial(mirror if of_mirror else server, target)
    fetch([server.url], target, expected, "the file")
    assert target.read_bytes() == CONTENT and server.asked == [asked]


def test_a_wrong_checksum_says_both(server, target):
    line = fault([server.url], target, Expected(sha256="0" * 64))
    assert f"{server.url}: its sha256 is {SHA}, expected {'0' * 64}" in line
    assert "Correct the source" in line and not partial(target).exists()
    assert server.asked == [None]


@pytest.mark.parametrize(
    ("behaviour", "size", "words"),
    [
        ({}, 5, "it has 300000 bytes, expected 5"),
        ({"tells_length": False}, 1000, "more than the expected 1000 bytes"),
        ({"tells_length": False}, 400_000, "bytes, expected 400000"),
        ({"codes": [404]}, None, "file.bin: HTTP 404"),
        ({"codes": [503] * 10}, None, "HTTP 503"),
        ({"redirect": "file:///etc/passwd"}, None, ""),
        ({"redirect": "ftp://127.0.0.1/x"}, None, ""),
        ({"redirect": "data:,x"}, None, ""),
    ],
)
def test_what_the_server_does_wrong_is_one_line(server, target, behaviour, size, words):
    vars(server).update(behaviour)
    assert words in fault([server.url], target, Expected(size=size))
    assert size != 5 or not partial(target).exists()
    if "codes" in behaviour:
        assert len(server.asked) == (1 if words.endswith("404") else 3)


@pytest.mark.parametrize("trouble", [{"codes": [404]}, {"content": CONTENT[::-1]}, None])
def test_the_next_mirror_helps_where_a_server_fails_lies_or_is_down(
    server, mirror, target, trouble
):
    vars(server).update(trouble or {})
    first = down(server) if trouble is None else server.url
    fetch([first, mirror.url], target, Expected(sha256=SHA), "the file")
    assert target.read_bytes() == CONTENT and mirror.asked[-1] is None


@pytest.fixture
def no_names(monkeypatch):
    """The next so many hosts are not found; `asked` counts all."""
    names = SimpleNamespace(missing=100, asked=0)
    known = socket.getaddrinfo

    def look_up(*args, **options):
        names.asked += 1
        names.missing -= 1
        if names.missing >= 0:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return known(*args, **options)

    monkeypatch.setattr(transfer, "_PAUSES", (0,) * 5)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return names


def test_without_a_network_it_soon_stops(server, mirror, target, no_names):
    line = fault([server.url, mirror.url], target)
    assert "Temporary failure" in line and "Check the network" in line
    assert no_names.asked == 2 * 3


def test_a_network_that_goes_away_meanwhile_is_waited_for(server, target, no_names, monkeypatch):
    no_names.missing = 0
    server.cuts = [100_000]
    answer = transfer.blocks

    def then_offline(response):
        yield from answer(response)
        no_names.missing = 5

    monkeypatch.setattr(transfer, "blocks", then_offline)
    fetch([server.url], target, Expected(), "the file")
    assert target.read_bytes() == CONTENT and no_names.asked == 1 + 5 + 1


def test_a_mirror_that_answers_is_asked_again(server, target, no_names):
    no_names.missing = 0
    server.codes = [503] * 4
    fetch([server.url], target, Expected(), "the file")
    assert target.read_bytes() == CONTENT


def test_all_mirrors_faults_are_told_without_keys_in_their_addresses(server, mirror, target):
    mirror.codes = [410]
    line = fault([down(server), mirror.url + "?key=secret"], target)
    assert "refused" in line and "HTTP 410" in line and "secret" not in line


def test_a_redirect_is_followed(server, mirror, target):
    server.redirect = mirror.url + "?goal"
    fetch([server.url], target, Expected(sha256=SHA), "the file")
    assert target.read_bytes() == CONTENT


def test_a_redirect_to_no_address_is_a_fault_of_that_mirror(server, mirror, target):
    server.redirect = "http://[::bad"
    assert "not valid" in fault([server.url], target)
    fetch([server.url, mirror.url], target, Expected(), "the file")
    assert target.read_bytes() == CONTENT


def test_an_address_that_is_not_ascii_is_asked_for(server, target):
    fetch([server.url + "?größe=1 2%20"], target, Expected(), "the file")
    assert target.read_bytes() == CONTENT


# Without a checksum


def only_content(path):
    if path.read_bytes() != CONTENT:
        raise DataError(f"{path}: not what is wanted")


def test_what_fails_its_check_is_not_kept_and_the_next_mirror_is_asked(server, mirror, target):
    server.content = CONTENT[:1000]
    wanted = Expected(check=only_content)
    assert f"{server.url}: file.bin: not what is wanted" in fault([server.url], target, wanted)
    assert not list(target.parent.iterdir()) and server.asked == [None]
    fetch([server.url, mirror.url], target, wanted, "the file")
    assert target.read_bytes() == CONTENT


def test_a_file_cut_unseen_is_not_complete(server, mirror, target):
    server.tells_length, server.cuts = False, [1000]
    fetch([server.url, mirror.url], target, Expected(check=only_content), "the file")
    assert target.read_bytes() == CONTENT and mirror.asked == [None]


def test_a_damaged_file_of_an_earlier_run_does_not_block(server, mirror, target):
    """The server has no byte after those that are here, which says nothing of them."""
    server.content = CONTENT[::-1]
    fetch([server.url], target, Expected(), "the file")
    fetch([server.url, mirror.url], target, Expected(check=only_content), "the file")
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("connections", [1, 4])
def test_a_host_that_gives_another_file_each_time_is_given_up(
    server, mirror, target, in_pieces, connections
):
    """Hosts behind one name, each with its own version, that do not heed If-Range."""
    server.heeds_if_range, server.cuts = False, [100_000] * 50
    server.new_etags = iter(f'"{n}"' for n in range(1000))
    mirror.accepts_ranges = True
    in_pieces([server.url, mirror.url], target, connections=connections)
    assert target.read_bytes() == CONTENT and len(server.asked) < 40


def test_a_finished_download_with_its_checksum_is_not_asked_for(server, target):
    def never(path):
        raise AssertionError

    fetch([server.url], target, Expected(sha256=SHA, check=never), "the file")
    fetch([down(server)], target, Expected(sha256=SHA), "the file")
    assert len(server.asked) == 1 and target.read_bytes() == CONTENT


def test_a_finished_download_without_checksum_is_compared_with_the_server(server, target):
    fetch([server.url], target, Expected(), "the file")
    fetch([server.url], target, Expected(), "the file")
    assert server.asked == [None, f"bytes={len(CONTENT)}-"]
    server.content, server.etag = b"new" * 200_000, '"two"'
    fetch([server.url], target, Expected(), "the file")
    assert target.read_bytes() == b"new" * 200_000


@pytest.mark.parametrize(("tells_length", "written"), [(True, 0), (False, 2 * 2**20)])
def test_the_disk_is_not_filled(server, target, monkeypatch, tells_length, written):
    def two_mebibytes_left(folder):
        used = partial(target).stat().st_size if partial(target).exists() else 0
        return SimpleNamespace(free=disk.RESERVE + 2 * 2**20 - used)

    monkeypatch.setattr(disk.shutil, "disk_usage", two_mebibytes_left)
    server.tells_length, server.content = tells_length, bytes(5 * 2**20)
    with pytest.raises(StorageError, match=r"file\.bin: needs .* [Ff]ree some space"):
        fetch([server.url], target, Expected(), "the file")
    assert not target.exists()
    assert not partial(target).exists() or partial(target).stat().st_size <= written


def test_a_web_page_is_not_the_file(server, mirror, target):
    server.kind = "text/html; charset=utf-8"
    assert "a web page" in fault([server.url], target)
    fetch([server.url, mirror.url], target, Expected(), "the file")
    assert target.read_bytes() == CONTENT


# Over several connections


@pytest.fixture
def in_pieces(server, monkeypatch):
    """A server of 30 pieces; `fetch` with four connections."""
    monkeypatch.setattr(parallel, "PIECE", 10_000)
    server.accepts_ranges = True

    def run(urls, target, expected=Expected(), connections=4):  # noqa: B008
        fetch(urls, target, expected, "the file", connections)

    return run


def pieces_asked(server):
    """Starts of the pieces asked for, sorted."""
    return sorted(span(asked)[0] for asked in server.asked if asked and not asked.endswith("-"))


def test_a_large_file_comes_in_pieces_at_once(server, target, in_pieces):
    server.awaited = server.two_at_once
    in_pieces([server.url], target, Expected(len(CONTENT), SHA))
    assert target.read_bytes() == CONTENT and not partial(target).exists()
    assert pieces_asked(server) == list(range(0, 300_000, 10_000))


def test_a_small_file_comes_at_once(server, target, in_pieces):
    server.content = CONTENT[:19_999]
    in_pieces([server.url], target)
    assert target.read_bytes() == server.content and server.asked == [None]


@pytest.mark.parametrize("accepts_ranges", [True, False])
def test_a_server_without_ranges_gives_the_file_over_one(server, target, in_pieces, accepts_ranges):
    """Also one that says that it has ranges."""
    server.ranges, server.accepts_ranges = False, accepts_ranges
    in_pieces([server.url], target)
    assert target.read_bytes() == CONTENT and server.asked[-1] is None


def test_cut_pieces_go_on_where_they_were_cut(server, target, in_pieces):
    server.cuts = [300_000, 5_000, 0, 7_000]
    in_pieces([server.url], target)
    assert target.read_bytes() == CONTENT
    assert any(start % 10_000 for start in pieces_asked(server))


def test_a_host_that_serves_few_at_once_is_asked_over_few(server, target, in_pieces):
    server.at_once, server.awaited = 2, server.refused
    in_pieces([server.url], target, connections=8)
    assert target.read_bytes() == CONTENT


def test_whole_pieces_are_kept_when_the_host_goes_down(server, mirror, target, in_pieces):
    server.codes = [0] * 10 + [410] * 100  # 0: as if nothing were the matter
    with pytest.raises(SourceError, match="HTTP 410"):
        in_pieces([server.url], target)
    assert not target.exists() and partial(target).exists()
    had = len(json.loads(target.with_name("file.bin.json").read_text())["pieces"][2])
    assert had > 0
    server.codes, server.asked = [], []
    in_pieces([server.url], target)
    assert target.read_bytes() == CONTENT and len(pieces_asked(server)) == 30 - had


def test_with_a_checksum_a_mirror_gives_the_missing_pieces(server, mirror, target, in_pieces):
    server.codes = [0] * 10 + [410] * 100
    mirror.accepts_ranges = True
    in_pieces([server.url, mirror.url], target, Expected(sha256=SHA))
    assert target.read_bytes() == CONTENT and 0 < len(pieces_asked(mirror)) < 30


def test_a_mirror_without_ranges_goes_on_after_the_first_gap(server, mirror, target, in_pieces):
    server.codes = [0] * 10 + [410] * 100
    mirror.ranges = False
    in_pieces([server.url, mirror.url], target, Expected(sha256=SHA))
    assert target.read_bytes() == CONTENT and not pieces_asked(mirror)


def test_a_download_begun_over_one_connection_goes_on_over_several(server, target, in_pieces):
    leave_partial(server, target, CONTENT[:105_000])
    in_pieces([server.url], target)
    assert target.read_bytes() == CONTENT
    assert pieces_asked(server) == list(range(100_000, 300_000, 10_000))


@pytest.mark.parametrize("then", ["one connection", "another file", "no partial file"])
def test_a_download_in_pieces_goes_on_or_starts_again(server, target, in_pieces, then):
    server.codes = [0] * 10 + [410] * 100
    with pytest.raises(SourceError):
        in_pieces([server.url], target)
    server.codes, server.asked = [], []
    if then == "another file":
        server.content, server.etag = CONTENT[::-1], '"two"'
    if then == "no partial file":
        partial(target).unlink()
    in_pieces([server.url], target, connections=1 if then == "one connection" else 4)
    assert target.read_bytes() == server.content
    assert bool(pieces_asked(server)) == (then != "one connection")


def test_pieces_with_a_wrong_checksum_are_not_kept(server, target, in_pieces):
    with pytest.raises(SourceError, match="its sha256 is"):
        in_pieces([server.url], target, Expected(sha256="0" * 64))
    assert not target.exists() and not partial(target).exists()


def test_pieces_do_not_fill_the_disk(server, target, in_pieces, monkeypatch):
    left = SimpleNamespace(free=disk.RESERVE + 200_000)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: left)
    with pytest.raises(StorageError, match=r"file\.bin: needs .* [Ff]ree some space"):
        in_pieces([server.url], target)
    assert not target.exists() and not partial(target).exists()


def test_a_disk_full_meanwhile_is_one_line(server, target, in_pieces):
    line = error_on_full_disk(lambda: in_pieces([server.url], target), room=100_000)
    assert line.startswith("StorageError: ") and "no space left while writing" in line
    assert "\n" not in line and not target.exists()
