"""`manymatch.Client`, and the page of the requests."""

import json
import os
import re
import subprocess
import sys
from functools import partial

import httpx
import pytest
from PIL import Image

import manymatch
from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex
from manymatch.util.errors import ConfigError, DataError, ManyMatchError

from .conftest import serving


@pytest.fixture(scope="module")
def address(indexes):
    served = [ServedIndex.from_folder(folder) for folder in indexes[::2]]
    with serving(application(served, rate=1e6)) as port:
        client = manymatch.Client(f"http://127.0.0.1:{port}")
        while client.health()["status"] == "loading":
            pass
        yield f"http://127.0.0.1:{port}"


def test_the_answers_are_those_of_the_index(address, indexes, pictures):
    client, index = manymatch.Client(address), manymatch.Index.open(indexes[0])

    def hits(answer):
        return [(one.id, pytest.approx(one.score, abs=1e-5)) for one in answer.results]

    for query in ("two dogs", pictures[1], Image.open(pictures[1])):
        assert hits(client.search(query, 3)) == hits(index.search(query, 3))
    best = index.search("two dogs", 1).results[0].id
    assert hits(client.similar(best)) == hits(index.similar(best))
    assert client.item(best) == index.item(best)
    assert client.picture(best) == index.picture(best)
    assert client.explain(best, "two dogs").score == pytest.approx(
        client.search("two dogs", 1).results[0].score, abs=1e-5
    )
    assert client.reload()["status"] == "ready"
    captions = manymatch.Client(address, "captions").search(pictures[1], 2)
    assert len(captions.results) == 2 and captions.results[0].text


def test_a_refusal_and_a_missing_service_are_one_line(address, tmp_path):
    client = manymatch.Client(address)
    for ask, words in (
        (lambda: client.search(""), "/search: "),
        (lambda: client.search("two dogs", 0), "k"),
        (lambda: client.item("nothing"), "no item 'nothing'"),
        (lambda: client.search(tmp_path / "none.png"), "none.png: No such file"),
        (lambda: manymatch.Client(address, "odd").search("two dogs"), "no index 'odd'"),
    ):
        with pytest.raises(DataError, match=words) as raised:
            ask()
        assert "\n" not in str(raised.value)
    for url in ("http://127.0.0.1:1", "127.0.0.1", "http://[", "odd://x"):
        with pytest.raises(ConfigError, match=re.escape(url)):
            manymatch.Client(url).health()
    for host in ("a" * 300, "xn--"):
        with pytest.raises(ManyMatchError, match=host[:9]):
            manymatch.Client(f"http://{host}").health()


def test_every_picture_and_no_other_file_is_a_query(address, tmp_path, pictures):
    client, picture = manymatch.Client(address), Image.open(pictures[1])
    best = client.search(picture, 1).results[0].id
    for mode in ("CMYK", "YCbCr", "HSV", "RGBA", "P"):
        assert client.search(picture.convert(mode), 1).results[0].id == best
    os.mkfifo(tmp_path / "pipe")
    closed = Image.new("RGB", (9, 9))
    closed.close()
    for query in (tmp_path / "pipe", tmp_path, Image.new("RGB", (0, 9)), closed, "\ud800"):
        with pytest.raises(DataError):
            client.search(query)
    for ask in (
        *(partial(client.search, query) for query in (None, 5, b"x")),
        *(partial(client.item, id) for id in (None, 5)),
        partial(client.search, "dogs", "3"),
        partial(client.search, "dogs", least="1"),
        *(partial(manymatch.Client, address, timeout=time) for time in (-1, 0, float("nan"), 1e9)),
        partial(manymatch.Client, address, auth=("me", 5)),
        partial(manymatch.Client, "http://\ud800"),
    ):
        with pytest.raises(ConfigError):
            ask()


def test_an_answer_that_is_nested_very_deeply_is_one_line(monkeypatch):
    client = manymatch.Client("http://x")
    for status in (200, 400):
        answer = httpx.Response(status, content=b"[" * 100_000)
        answers = httpx.MockTransport(lambda _, answer=answer: answer)
        monkeypatch.setattr(client, "_http", httpx.Client(base_url="http://x", transport=answers))
        for ask in (lambda: client.item("a"), client.health):
            with pytest.raises(DataError, match="service of ManyMatch"):
                ask()


def test_a_container_runs_what_is_there(root, address):
    docker = (root / "deploy" / "Dockerfile.search").read_text().replace("\\\n", "")
    for names in re.findall(r"^COPY (.+) \S+$", docker, re.MULTILINE):
        assert all((root / name).exists() for name in names.split())
    lines = re.findall(r"^(?:HEALTHCHECK.*? )?(CMD|ENTRYPOINT) (\[.+\])$", docker, re.MULTILINE)
    check, command, options = (json.loads(words) for _, words in lines)
    assert [*command, *options] == ["manymatch", "serve", "/data/index", "--host", "0.0.0.0"]
    program = check[2].replace("http://127.0.0.1:8000", address)
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_the_page_of_the_requests_needs_nobody_else(client):
    page = client.get("/docs")
    assert page.status_code == 200 and "GET /search" in page.text and "<script" not in page.text
    targets = set(re.findall(r"(?:href|src)='([^']+)'", page.text))
    assert targets == {"/page/page.css", "/openapi.json", "/"}
    assert all(client.get(target).status_code == 200 for target in targets)
