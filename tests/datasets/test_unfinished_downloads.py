"""Downloads: checks of the content, earlier runs, killed processes, the network and the disk."""

import multiprocessing
import socket
import time

import pytest
from full_disk import error_on_full_disk
from scripted_server import CONTENT, OTHER, PART, RIGHT, SHA, file, leave, serving, shorten_waiting

from manymatch.datasets.fetching import transfer
from manymatch.datasets.fetching.transfer import Expected, fetch
from manymatch.util.errors import DataError, ManyMatchError, SourceError
from manymatch.util.files import partial_path

NOTHING, BY_SHA = Expected(), Expected(sha256=SHA)


def only_content(path):
    if path.read_bytes() != CONTENT:
        raise DataError(f"{path}: not what is wanted")


@pytest.mark.parametrize(
    ("answer", "earlier"),
    [(file(PART), False), (file(OTHER), True)],
)
def test_without_a_checksum_a_check_of_the_content_decides(target, answer, earlier):
    wanted = Expected(check=only_content)
    with serving(answer) as server, serving(RIGHT) as mirror:
        if earlier:  # a damaged file of an earlier run
            fetch([server.url], target, NOTHING, "the file")
        with pytest.raises(SourceError, match=r"file\.bin: not what is wanted"):
            fetch([server.url], target, wanted, "the file")
        assert not list(target.parent.iterdir())
        fetch([server.url, mirror.url], target, wanted, "the file")
    assert target.read_bytes() == CONTENT and mirror.asked == [None]


def test_a_host_that_gives_another_file_each_time_is_given_up(target):
    """Several hosts behind one name, each with its own version."""
    answers = [file(CONTENT, f'"{n}"', heeds=False, cut=40_000) for n in range(20)]
    with serving(*answers) as server, serving(RIGHT) as mirror:
        fetch([server.url, mirror.url], target, NOTHING, "the file")
    assert target.read_bytes() == CONTENT and len(server.asked) < 15


def test_a_finished_download_is_compared_by_its_checksum_or_else_with_the_server(target):
    with serving(RIGHT) as server:
        for expected in (NOTHING, NOTHING, BY_SHA):
            fetch([server.url], target, expected, "the file")
        assert server.asked == [None, f"bytes={len(CONTENT)}-"]
        server.answers = [file(OTHER, '"two"')]
        fetch([server.url], target, NOTHING, "the file")
    assert target.read_bytes() == OTHER


def test_a_killed_process_loses_nothing(target):
    with serving(file(CONTENT, cut=70_000, wait=30.0), RIGHT) as server:
        work = ([server.url], target, NOTHING, "the file")
        process = multiprocessing.get_context("fork").Process(target=fetch, args=work)
        process.start()
        while not (partial_path(target).exists() and partial_path(target).stat().st_size >= 2**16):
            assert process.is_alive()
            time.sleep(0.01)
        process.kill()
        process.join()
        kept = partial_path(target).stat().st_size
        fetch(*work)
    assert target.read_bytes() == CONTENT and server.asked == [None, f"bytes={kept}-"]


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_link_with_the_temporary_name_is_not_written_through(target, link):
    with serving(RIGHT) as server:
        leave(target, server.url)
        other = target.with_name("other")
        partial_path(target).rename(other)
        getattr(partial_path(target), link)(other)
        fetch([server.url], target, NOTHING, "the file")
    assert other.read_bytes() == PART
    assert target.read_bytes() == CONTENT and not target.is_symlink()


LOOKUPS = {
    "never": ([True] * 100, RIGHT, 6),
    "away meanwhile": ([False] + [True] * 5 + [False], file(CONTENT, cut=40_000), 7),
    "back soon": ([True] * 4 + [False], RIGHT, 5),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_network_is_waited_for_unless_it_was_never_there(target, name, monkeypatch):
    """(which look-ups of hosts fail, first answer, look-ups)."""
    failing, answer, count = LOOKUPS[name]
    monkeypatch.setattr(transfer, "_PAUSES", (0.0,) * 5)
    known, plan, asked = socket.getaddrinfo, iter(failing), []

    def look_up(*args, **options):
        asked.append(args)
        if next(plan):
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return known(*args, **options)

    with serving(answer, RIGHT) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        urls = [url, f"{url}?mirror"] if name != "away meanwhile" else [url]
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        if name == "never":
            with pytest.raises(SourceError, match=r"Temporary failure.*Check the network"):
                fetch(urls, target, NOTHING, "the file")
        else:
            fetch(urls, target, NOTHING, "the file")
            assert target.read_bytes() == CONTENT
    assert len(asked) == count


def test_an_address_that_is_not_ascii_and_a_proxy_of_the_environment_are_used(target, monkeypatch):
    lines = []

    def proxy(request):
        lines.append(request.partition("\r\n")[0])
        return RIGHT(request)

    with serving(proxy) as server:
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/file.bin"))
        monkeypatch.setenv("no_proxy", "")
        fetch(["http://nowhere.invalid/file.bin?größe=1 2%20"], target, NOTHING, "the file")
        monkeypatch.setenv("http_proxy", "gopher://[")
        with pytest.raises(SourceError, match="proxy"):
            fetch(["http://nowhere.invalid/file.bin"], target, NOTHING, "the file")
    assert lines == ["GET http://nowhere.invalid/file.bin?gr%C3%B6%C3%9Fe=1%202%20 HTTP/1.1"]


def test_a_disk_full_meanwhile_is_one_line(target):
    with serving(file(CONTENT)) as server:
        work = [server.url], target, NOTHING, "the file"
        line = error_on_full_disk(lambda: fetch(*work), room=30_000)
    assert line.startswith("StorageError: ") and "no space left" in line
    assert "\n" not in line and not target.exists()


@pytest.mark.parametrize("length", [True, False])
def test_the_disk_is_not_filled(target, monkeypatch, length):
    shorten_waiting(monkeypatch)
    words = r"file\.bin: needs .* [Ff]ree some space"
    answer = file(bytes(5 * 2**20), length=length)
    with serving(answer) as server, pytest.raises(ManyMatchError, match=words):
        fetch([server.url], target, NOTHING, "the file")
    assert not target.exists() and not partial_path(target).exists()
