"""Shards at a URL give the batches, weights and metrics of shards on the disk, or one line."""

import contextlib
import json
import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import scripted_server
import yaml
from command_line import configured, fails, run
from hashed_files import edit, reseal
from killing import kill_during
from scripted_server import file, head, serving
from tiny_data import TinyData, make_data
from tiny_run import Run, preset

from manymatch.batch.vocabulary import Vocabulary
from manymatch.cli.project import LAYOUT
from manymatch.shards import remote
from manymatch.shards.read import Loader, batches, samples
from manymatch.util.errors import ManyMatchError
from manymatch.util.seal import open_sealed

from .test_read import contents

CACHE = Path("data/cache")
PLENTY = 10**9


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """48 training images in twelve shards. Do not change it."""
    sizes = {"train": 48, "validation": 8, "test": 8}
    data = make_data(tmp_path_factory.mktemp("tiny"), sizes, variable=True, width=24)
    data.write_shards(images_per_shard=4)
    return data


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch, one_thread):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(remote, "_PAUSES", (0.0, 0.0, 0.0))


def served(folder, *first, **options):
    """An answer of a plain web server with the files of `folder`; `first`: the first answers for
    each file, with the options of `scripted_server.file`, or a status. `options`: the later ones.
    """
    waiting = {}

    def answer(request):
        path = folder / request.split()[1].removeprefix("/grid/")
        if not path.is_file():
            return [head("Content-Length: 0", status="404 Not Found")]
        now = waiting.setdefault(path.name, list(first))
        how = now.pop(0) if now else options
        if isinstance(how, str):
            return [head("Content-Length: 0", status=how)]
        return file(path.read_bytes(), **how)(request)

    return answer


@contextlib.contextmanager
def head_of(folder, answer, cache_bytes=PLENTY):
    """The server, and a folder with the head of the shards that the server has."""
    with serving(answer) as server:
        local = Path("data/shards/tiny/grid")
        remote.write_head(server.url.removesuffix("/file.bin"), local, cache_bytes)
        assert {path.name for path in local.iterdir()} == {"SEAL.json", "index.json"}
        yield server, local


def epochs(tiny, folder, workers=0, **share):
    words = Vocabulary.load(tiny.vocabulary)
    settings = {"captions_per_image": 2, **share}

    def plan(epoch):
        return batches(folder, "train", words, 5, shuffle=(0, epoch), **settings)

    loader = Loader(plan, workers)
    return [contents(loader.epoch(epoch)) for epoch in (0, 1)]


def in_cache():
    return sum(path.stat().st_size for path in CACHE.glob("*.tar*"))


CUT = {"cut": 9_000}
SERVERS = {
    "without ranges": ((), {"ranges": False}),
    "without lengths": ((), {"ranges": False, "length": False, "etag": None}),
    "503 first": (("503 Service Unavailable",) * 2, {}),
    "cut, then resumed": ((CUT, CUT), {}),
    "cut without ranges": ((CUT | {"ranges": False},), {"ranges": False}),
    "cut before the first byte": (({"cut": 0},), {}),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_web_server_gives_the_batches_of_the_disk(tiny, name):
    first, later = SERVERS[name]
    with head_of(tiny.shards, served(tiny.shards, *first, **later)) as (server, local):
        assert epochs(tiny, local) == epochs(tiny, tiny.shards)
        assert list(map(repr, samples(local, "test"))) == list(
            map(repr, samples(tiny.shards, "test"))
        )
        asked = len(server.asked)
        epochs(tiny, local)
        assert len(server.asked) == asked  # all shards are in the cache
        assert not list(CACHE.glob("*.tar.partial"))
        if name == "cut, then resumed":
            assert "bytes=9000-" in server.asked and "bytes=18000-" in server.asked


@pytest.mark.parametrize("workers", [0, 2])
def test_the_cache_is_bounded(tiny, workers):
    largest = max(path.stat().st_size for path in tiny.shards.glob("*.tar"))
    with head_of(tiny.shards, served(tiny.shards), 3 * largest) as (_, local):
        assert epochs(tiny, local, workers) == epochs(tiny, tiny.shards)
        assert 0 < in_cache() <= 3 * largest


def test_unfinished_shards_of_killed_processes_give_way(tiny):
    """And so does one whose lock the reader holds for another shard."""
    largest = max(path.stat().st_size for path in tiny.shards.glob("*.tar"))
    with head_of(tiny.shards, served(tiny.shards), 2 * largest) as (_, local):
        for byte in range(256):
            (CACHE / f"{byte:02x}{'0' * 62}-{largest}.tar.partial").write_bytes(b"x")
        assert epochs(tiny, local) == epochs(tiny, tiny.shards)
        assert in_cache() <= 2 * largest


def test_a_training_from_a_server_has_the_same_bytes(tiny, tmp_path):
    """Of weights, curves and metrics, with a cache that holds a part of the shards."""
    Run(tmp_path / "disk", tiny).train(preset(features_in="shards"))
    largest = max(path.stat().st_size for path in tiny.shards.glob("*.tar"))
    with head_of(tiny.shards, served(tiny.shards), 4 * largest) as (_, local):
        away = TinyData(tiny.folder)
        away.shards = local
        Run(tmp_path / "url", away).train(preset(features_in="shards"))
    assert Run(tmp_path / "url", away).outputs() == Run(tmp_path / "disk", tiny).outputs()


def share_of(tiny, local, rank, queue):
    queue.put([batch.image_ids for batch in batches_of(tiny, local, rank)])


def batches_of(tiny, local, rank):
    words = Vocabulary.load(tiny.vocabulary)
    return batches(local, "train", words, 3, shuffle=(0, 0), rank=rank, world=2)


def test_two_processes_see_each_image_once(tiny):
    """And fetch each shard once, because they share the cache."""
    with head_of(tiny.shards, served(tiny.shards)) as (server, local):
        asked, queue = len(server.asked), multiprocessing.Queue()
        ranks = [
            multiprocessing.Process(target=share_of, args=(tiny, local, rank, queue))
            for rank in range(2)
        ]
        for process in ranks:
            process.start()
        names = [name for _ in ranks for batch in queue.get(timeout=60) for name in batch]
        for process in ranks:
            process.join()
        assert len(server.asked) == asked + 12
    assert sorted(names) == sorted(sample.image_id for sample in samples(tiny.shards, "train"))


@pytest.mark.parametrize("left", ["whole", "half", "damaged", "longer", "damaged in the cache"])
def test_what_a_killed_process_leaves_is_used_or_fetched_again(tiny, left):
    with head_of(tiny.shards, served(tiny.shards)) as (server, local):
        seal = open_sealed(local, "", whole_bytes=None)
        for name in seal.hashes:
            if not name.endswith(".tar"):
                continue
            content = (tiny.shards / name).read_bytes()
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
        assert epochs(tiny, local) == epochs(tiny, tiny.shards)
        resumed = {"whole": [], "half": ["bytes=5000-"] * 12}
        assert left not in resumed or server.asked == resumed[left]


def test_a_kill_loses_nothing(tiny):
    with head_of(tiny.shards, served(tiny.shards)) as (_, local):
        for call in (1, 3):
            kill_during(lambda: epochs(tiny, local), "manymatch.shards.remote.sha256", call)
        assert epochs(tiny, local) == epochs(tiny, tiny.shards)


@pytest.mark.parametrize("scheme", ["file", "pipe"])
def test_other_schemes(tiny, scheme, tmp_path):
    away = tmp_path / "away"
    remote.upload(tiny.shards, f"file://{away}")
    assert {p.name: p.read_bytes() for p in (away / "grid").iterdir()} == {
        p.name: p.read_bytes() for p in tiny.shards.iterdir()
    }
    url = f"file://{away}" if scheme == "file" else f"pipe:cat {away}/{{}}"
    remote.write_head(url, Path("grid"), PLENTY)
    assert epochs(tiny, Path("grid")) == epochs(tiny, tiny.shards)


REFUSED = {
    "--part 1/2": "finished shards",
    "--part 1/2 --to file:///x": "--to",
    "--to bucket": "expected a URL",
    "--to s3://me:secret@bucket": "environment",
    "--to pipe:cat": "{}",
    "--to http://127.0.0.1:1": "cannot be written",
}


def test_the_command_writes_to_a_url_and_reads_from_it(tiny, root, tmp_path, monkeypatch, capfd):
    configured(root, tmp_path, monkeypatch)
    settings = yaml.safe_load(Path("params.yaml").read_text())
    settings["shards"] = {"images_per_shard": 4, "thumbnail": 16}
    Path("params.yaml").write_text(yaml.safe_dump(settings))
    for source, target in {
        tiny.captions: LAYOUT.captions("scenes"),
        tiny.graphs: LAYOUT.scene_graphs("scenes"),
        tiny.store: LAYOUT.features("scenes", "grid"),
    }.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    shutil.copytree(tiny.raw, LAYOUT.raw("scenes"))
    run(f"shards scenes grid --to file://{tmp_path}/away", monkeypatch)
    local = LAYOUT.shards("scenes", "grid")
    written = shutil.copytree(local, tmp_path / "written")

    settings["shards"]["urls"] = {"scenes": f"file://{tmp_path}/away"}
    Path("params.yaml").write_text(yaml.safe_dump(settings))
    run("shards scenes grid", monkeypatch)
    assert not list(local.glob("*.tar"))
    assert epochs(tiny, local) == epochs(tiny, written)
    for words, told in REFUSED.items():
        assert told in fails(f"shards scenes grid {words}", monkeypatch, capfd)


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
        remote.write_head(url, Path("grid"), PLENTY)
    assert url.partition(" ")[0] in str(caught.value)
    assert not list(Path().iterdir())


def outside(folder):
    edit(folder / "index.json", splits={"train": dict(_SPLIT, shards=["../a.tar"])})
    reseal(folder)


def many(folder):
    edit(folder / "index.json", splits={"train": dict(_SPLIT, shard_images=[10**9], images=10**9)})
    reseal(folder)


_SPLIT = {"shards": ["train-000000.tar"], "shard_images": [4], "images": 4, "captions": 12}
HEADS = {
    "no seal": (lambda folder: (folder / "SEAL.json").unlink(), "404"),
    "no JSON": (lambda folder: (folder / "SEAL.json").write_bytes(b"\x80\x04."), "JSON"),
    "another index": (lambda folder: (folder / "index.json").write_text("{}"), "seal|cut"),
    "a shard elsewhere": (outside, "index"),
    "more images than bytes": (many, "1000000000 images"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_hostile_head_is_one_line(tiny, name, tmp_path):
    change, words = HEADS[name]
    change(shutil.copytree(tiny.shards, tmp_path / "site") and tmp_path / "site")
    with (
        serving(served(tmp_path / "site")) as server,
        pytest.raises(ManyMatchError, match=words) as caught,
    ):
        remote.write_head(server.url.removesuffix("/file.bin"), Path("grid"), PLENTY)
    assert "127.0.0.1" in str(caught.value)
    assert [path.name for path in Path().iterdir()] == ["site"]


SHARDS = {
    "other content": (lambda content: content[::-1], "differs from the seal"),
    "too long": (lambda content: content + b"x", "more than the expected"),
    "cut for ever": (lambda content: content[:-1], "cut after"),
}


@pytest.mark.parametrize("name", SHARDS)
def test_a_hostile_shard_is_one_line(tiny, name, tmp_path):
    change, words = SHARDS[name]
    site = shutil.copytree(tiny.shards, tmp_path / "site")
    with head_of(site, served(site, ranges=False)) as (_, local):
        for path in site.glob("*.tar"):
            path.write_bytes(change(path.read_bytes()))
        with pytest.raises(ManyMatchError, match=words):
            epochs(tiny, local)
        assert not list(CACHE.glob("*.tar"))


def test_a_shard_larger_than_the_cache_is_one_line(tiny):
    with (
        head_of(tiny.shards, served(tiny.shards), 1000) as (_, local),
        pytest.raises(ManyMatchError, match=r"cache_gb"),
    ):
        epochs(tiny, local)


def test_a_slow_host_is_left(tiny, monkeypatch):
    monkeypatch.setattr(remote, "WINDOW", 0.1)
    monkeypatch.setattr(remote, "LEAST_SPEED", 10**6)

    def slowly(request):
        content = (tiny.shards / request.split()[1].removeprefix("/grid/")).read_bytes()
        yield head(f"Content-Length: {len(content)}")
        if not request.split()[1].endswith(".tar"):
            yield content
        yield from scripted_server.slowly([content[:1]] * 1000)

    with (
        head_of(tiny.shards, slowly) as (_, local),
        pytest.raises(ManyMatchError, match="only"),
    ):
        epochs(tiny, local)


def test_a_folder_from_elsewhere_names_no_url(tiny, tmp_path):
    """The note of the URL is the user's: without it nothing is fetched."""
    with head_of(tiny.shards, served(tiny.shards)) as (_, local):
        shutil.rmtree(CACHE)
        (local / "note.json").write_text(json.dumps({"url": "pipe:touch here {}", "bytes": 10**9}))
        with pytest.raises(ManyMatchError, match="no such file"):
            epochs(tiny, local)
    assert not Path("here").exists()


def test_an_import_loads_no_fsspec():
    code = "import manymatch, manymatch.shards.remote, sys; print(manymatch.__file__ and 0)"
    output = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True)
    assert b"fsspec" not in output.stderr
