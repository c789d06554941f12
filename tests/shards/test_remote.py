"""Shards at a URL give the batches, weights and metrics of shards on the disk."""

import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
import yaml
from command_line import configured_with, fails, run
from killing import kill_during
from s3_server import s3_bucket
from served_shards import CACHE, PLENTY, epochs, head_of, served
from tiny_data import TinyData
from tiny_run import Run, preset

from manymatch.cli.project import LAYOUT
from manymatch.search.index.feature_sources import ShardFolder
from manymatch.shards import remote, remote_writing
from manymatch.shards.read import samples
from manymatch.util.seal import open_sealed

pytestmark = pytest.mark.usefixtures("away")


def in_cache():
    return sum(path.stat().st_size for path in CACHE.glob("*.tar*"))


CUT = {"cut": 9_000}
SERVERS = {
    "without lengths": ((), {"ranges": False, "length": False, "etag": None}),
    "503 first": (("503 Service Unavailable",) * 2, {}),
    "cut, then resumed": ((CUT, CUT), {}),
    "cut without ranges": ((CUT | {"ranges": False},), {"ranges": False}),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_web_server_gives_the_batches_of_the_disk(sharded, name):
    first, later = SERVERS[name]
    with head_of(sharded.shards, served(sharded.shards, *first, **later)) as (server, local):
        assert epochs(sharded, local) == epochs(sharded, sharded.shards)
        assert list(map(repr, samples(local, "test"))) == list(
            map(repr, samples(sharded.shards, "test"))
        )
        items = [list(ShardFolder(place, None).entries()) for place in (local, sharded.shards)]
        assert items[0] == items[1]
        asked = len(server.asked)
        epochs(sharded, local)
        assert len(server.asked) == asked  # all shards are in the cache
        assert not list(CACHE.glob("*.tar.partial"))
        if name == "cut, then resumed":
            assert "bytes=9000-" in server.asked and "bytes=18000-" in server.asked


def test_the_cache_is_bounded(sharded):
    """Unfinished shards of killed processes give way, and so does one whose lock the reader holds
    for another shard."""
    largest = max(path.stat().st_size for path in sharded.shards.glob("*.tar"))
    with head_of(sharded.shards, served(sharded.shards), 3 * largest) as (_, local):
        assert epochs(sharded, local, workers=2) == epochs(sharded, sharded.shards)
        assert 0 < in_cache() <= 3 * largest
    shutil.rmtree(local)
    shutil.rmtree(CACHE)
    with head_of(sharded.shards, served(sharded.shards), 2 * largest) as (_, local):
        for byte in range(256):
            (CACHE / f"{byte:02x}{'0' * 62}-{largest}.tar.partial").write_bytes(b"x")
        assert epochs(sharded, local) == epochs(sharded, sharded.shards)
        assert in_cache() <= 2 * largest


def test_a_shard_stays_until_its_reader_has_opened_it(sharded, monkeypatch):
    """A second reader, which needs the room of the first one's shard, waits for the first one."""
    names = sorted(path.name for path in sharded.shards.glob("*.tar"))[:2]
    largest = max((sharded.shards / name).stat().st_size for name in names)
    fetch, waiting = remote._fetch, iter([True])
    with (
        head_of(sharded.shards, served(sharded.shards), largest) as (_, local),
        ThreadPoolExecutor(1) as second,
    ):
        seal = open_sealed(local, "", whole_bytes=None)

        def content(name):
            with remote.open_cached(seal, name, *remote.source(seal, name)) as stream:
                return stream.read()

        def fetch_then_wait(*arguments):
            fetch(*arguments)
            if next(waiting, False):
                reads.append(second.submit(content, names[1]))
                wait(reads, 0.5)

        reads = []
        monkeypatch.setattr(remote, "_fetch", fetch_then_wait)
        read = [content(names[0]), reads[0].result()]
    assert read == [(sharded.shards / name).read_bytes() for name in names]


def test_a_training_from_a_server_has_the_same_bytes(sharded, tmp_path):
    """Of weights, curves and metrics, with a cache that holds a part of the shards, after a kill in
    the second epoch."""
    Run(tmp_path / "disk", sharded).train(preset(features_in="shards"))
    largest = max(path.stat().st_size for path in sharded.shards.glob("*.tar"))
    with head_of(sharded.shards, served(sharded.shards), 4 * largest) as (_, local):
        away = TinyData(sharded.folder)
        away.shards = local
        run_away = Run(tmp_path / "url", away)
        step = "manymatch.training.loop.Losses.forward"
        kill_during(lambda: run_away.train(preset(features_in="shards")), step, 8)
        run_away.train(preset(features_in="shards"))
    assert Run(tmp_path / "url", away).outputs() == Run(tmp_path / "disk", sharded).outputs()


@pytest.mark.parametrize("left", ["whole", "half", "damaged", "longer", "damaged in the cache"])
def test_what_a_killed_process_leaves_is_used_or_fetched_again(sharded, left):
    with head_of(sharded.shards, served(sharded.shards)) as (server, local):
        seal = open_sealed(local, "", whole_bytes=None)
        for name in seal.hashes:
            if not name.endswith(".tar"):
                continue
            content = (sharded.shards / name).read_bytes()
            content = {
                "whole": content,
                "half": content[:5000],
                "damaged": b"x" * 5000,
                "longer": content + b"x",
                "damaged in the cache": content[::-1],
            }[left]
            ending = "" if left == "damaged in the cache" else ".partial"
            (CACHE / f"{seal.hashes[name]}-{seal.sizes[name]}.tar{ending}").write_bytes(content)
        server.asked.clear()
        assert epochs(sharded, local) == epochs(sharded, sharded.shards)
        resumed = {"whole": ["bytes=20480-"] * 12, "half": ["bytes=5000-"] * 12}
        assert left not in resumed or server.asked == resumed[left]


@pytest.mark.parametrize("scheme", ["file", "pipe"])
def test_other_schemes(sharded, scheme, tmp_path):
    away = tmp_path / "away"
    remote_writing.upload(sharded.shards, f"file://{away}")
    assert {p.name: p.read_bytes() for p in (away / "grid").iterdir()} == {
        p.name: p.read_bytes() for p in sharded.shards.iterdir()
    }
    url = f"file://{away}" if scheme == "file" else f"pipe:cat {away}/{{}}"
    remote.write_head(url, Path("tiny/grid"), PLENTY)
    assert epochs(sharded, Path("tiny/grid")) == epochs(sharded, sharded.shards)


REFUSED = {
    "--part 1/2": "finished shards",
    "--to bucket": "expected a URL",
    "--to s3://me:secret@bucket": "environment",
    "--to pipe:cat": "{}",
    "--to http://127.0.0.1:1": "cannot be written",
}


def test_the_command_writes_to_a_url_and_reads_from_it(sharded, root, tmp_path, monkeypatch, capfd):
    settings = configured_with(sharded, root, tmp_path, monkeypatch)
    run(f"shards scenes grid --to file://{tmp_path}/away", monkeypatch)
    local = LAYOUT.shards("scenes", "grid")
    written = shutil.copytree(local, tmp_path / "written")

    settings["shards"]["urls"] = {"scenes": f"file://{tmp_path}/away"}
    Path("params.yaml").write_text(yaml.safe_dump(settings))
    run("shards scenes grid", monkeypatch)
    assert not list(local.glob("*.tar"))
    assert epochs(sharded, local) == epochs(sharded, written)
    for words, told in REFUSED.items():
        assert told in fails(f"shards scenes grid {words}", monkeypatch, capfd)


def test_an_s3_server(sharded, monkeypatch):
    pytest.importorskip("s3fs")
    with s3_bucket(monkeypatch) as bucket:
        remote_writing.upload(sharded.shards, f"{bucket}/tiny")
        remote.write_head(f"{bucket}/tiny", Path("tiny/grid"), PLENTY)
        assert epochs(sharded, Path("tiny/grid"), workers=2) == epochs(sharded, sharded.shards)
