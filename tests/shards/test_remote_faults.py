"""A host of shards that stays away, damages or lies ends a command with one line."""

import json
import shutil
from pathlib import Path

import pytest
import scripted_server
from hashed_files import edit, reseal
from scripted_server import head, header, serving
from served_shards import CACHE, PLENTY, epochs, head_of, served

from manymatch.datasets.fetching import http
from manymatch.shards import remote
from manymatch.util.errors import ManyMatchError
from manymatch.util.json_file import content_hash

pytestmark = pytest.mark.usefixtures("away")


HOSTS = {
    "http://127.0.0.1:1/a": "connect",
    "file:///none/such": "No such file",
    "pipe:exit 3 {}": "code 3",
    "nosuch://a/b": "nosuch",
    "gs://a/b": "gcsfs",
}


@pytest.mark.parametrize("url", HOSTS)
def test_a_host_that_stays_away_is_one_line(url):
    with pytest.raises(ManyMatchError, match=f"(?i){HOSTS[url]}") as caught:
        remote.write_head(url, Path("tiny/grid"), PLENTY)
    assert url.partition(" ")[0] in str(caught.value)
    assert not list(Path().rglob("grid*"))


def outside(folder):
    edit(folder / "index.json", splits={"train": dict(_SPLIT, shards=["../a.tar"])})
    reseal(folder)


def many(folder):
    edit(folder / "index.json", splits={"train": dict(_SPLIT, shard_images=[10**9], images=10**9)})
    reseal(folder)


def renamed(**names):
    return lambda folder: edit(folder / "index.json", **names)


def hashed_as(text):
    """The seal names another text as the hash of a shard."""

    def change(folder):
        content = json.loads((folder / "SEAL.json").read_text())
        del content["seal_sha256"]
        content["files"]["train-000000.tar"]["sha256"] = text
        content["seal_sha256"] = content_hash(content)
        (folder / "SEAL.json").write_text(json.dumps(content))

    return change


_SPLIT = {"shards": ["train-000000.tar"], "shard_images": [4], "images": 4, "captions": 12}
HEADS = {
    "no seal": (lambda folder: (folder / "SEAL.json").unlink(), "404"),
    "another index": (lambda folder: (folder / "index.json").write_text("{}"), "bytes, expected"),
    "a shard elsewhere": (outside, "index"),
    "more images than bytes": (many, "1000000000 images"),
    "another data set": (renamed(dataset="other"), "shards of other/grid, not of tiny/grid"),
    "a hash outside the cache": (hashed_as("../../victim"), "the hash"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_hostile_head_is_one_line(sharded, name, tmp_path):
    change, words = HEADS[name]
    change(shutil.copytree(sharded.shards, tmp_path / "site") and tmp_path / "site")
    with (
        serving(served(tmp_path / "site")) as server,
        pytest.raises(ManyMatchError, match=words) as caught,
    ):
        site = server.url.removesuffix("/file.bin")
        remote.write_head(site, Path("tiny/grid"), PLENTY)
    assert f"{site}/grid" in str(caught.value)
    assert not list(Path("tiny").iterdir())


SHARDS = {
    "other content": (lambda content: content[::-1], "its sha256 is"),
    "too long": (lambda content: content + b"x", "bytes, expected"),
    "cut for ever": (lambda content: content[:-1], "bytes, expected"),
}


@pytest.mark.parametrize("name", SHARDS)
def test_a_hostile_shard_is_one_line(sharded, name, tmp_path):
    change, words = SHARDS[name]
    site = shutil.copytree(sharded.shards, tmp_path / "site")
    with head_of(site, served(site, ranges=False)) as (_, local):
        for path in site.glob("*.tar"):
            path.write_bytes(change(path.read_bytes()))
        with pytest.raises(ManyMatchError, match=words):
            epochs(sharded, local)
        assert not list(CACHE.glob("*.tar"))


REFUSALS = {
    "416": [
        head("Content-Range: bytes */5", "Content-Length: 0", status="416 Range Not Satisfiable")
    ],
    "another range": [
        head("Content-Range: bytes 0-9/10", "Content-Length: 10", status="206 Partial Content"),
        bytes(10),
    ],
}


@pytest.mark.parametrize(("name", "cuts"), [("416", "always"), ("another range", "once")])
def test_a_host_that_refuses_to_go_on_is_asked_for_the_whole_shard(sharded, name, cuts):
    """A host that never sends the whole is left."""
    cut = {"cut": 9_000, "ranges": False}
    plain = served(sharded.shards, cut, **(cut if cuts == "always" else {"ranges": False}))

    def answer(request):
        return REFUSALS[name] if header(request, "Range") else plain(request)

    with head_of(sharded.shards, answer) as (server, local):
        if cuts == "once":
            assert epochs(sharded, local) == epochs(sharded, sharded.shards)
            assert "bytes=9000-" in server.asked
        else:
            server.asked.clear()
            with pytest.raises(ManyMatchError, match="each time"):
                epochs(sharded, local)
            assert len(server.asked) < 50  # seven for each shard that a thread fetches ahead


def test_a_shard_larger_than_the_cache_is_one_line(sharded):
    with (
        head_of(sharded.shards, served(sharded.shards), 1000) as (_, local),
        pytest.raises(ManyMatchError, match=r"cache_gb"),
    ):
        epochs(sharded, local)


def test_a_slow_host_is_left(sharded, monkeypatch):
    monkeypatch.setattr(http, "WINDOW", 0.1)
    monkeypatch.setattr(http, "LEAST_SPEED", 10**6)

    def slowly(request):
        content = (sharded.shards / request.split()[1].removeprefix("/grid/")).read_bytes()
        yield head(f"Content-Length: {len(content)}")
        if not request.split()[1].endswith(".tar"):
            yield content
        yield from scripted_server.slowly([content[:1]] * 1000)

    with (
        head_of(sharded.shards, slowly) as (_, local),
        pytest.raises(ManyMatchError, match="only"),
    ):
        epochs(sharded, local)
