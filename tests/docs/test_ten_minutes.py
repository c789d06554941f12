"""A new user's ten minutes: the lines of README.md in a clean copy of the checkout, each timed, and
those of docs/own-data.md.

The present environment stands in place of the installation. `make repro` runs as printed, on the
tiny pipeline of `finished`, whose outputs DVC takes from a cache. The pictures are drawn, or
photographs of Flickr8k if MANYMATCH_DATA is set.
"""

import csv
import json
import os
import re
import shutil
import signal
import socket
import tarfile
import time
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
import warm_commands
from PIL import Image
from waiting import ready
from workspace import kill

from manymatch.datasets.base import NEAR_DUPLICATES

ELSEWHERE = (
    *("make test", "source ", "dvc repro$", "dvc repro evaluate@scenes-", "dvc exp run "),
    *("dvc metrics diff", "manymatch (explore|experiment|tune|train) ", "make serve"),
    *("prefect deployment run ", "manymatch .* --compare", "manymatch .* scenes.index"),
)
"""The lines that other tests run, or that take hours: stages, services, trainings, pages."""


@pytest.fixture
def photos(finished, tmp_path):
    """A folder with 51 pictures in `photos`, and the captions of 50 of them in `captions.csv`."""
    captions = {}
    (folder := tmp_path / "own" / "photos").mkdir(parents=True)
    if real := os.environ.get("MANYMATCH_DATA"):
        flickr8k = Path(real, "flickr8k")
        with tarfile.open(flickr8k / "images_224.tar") as pictures:
            for member in islice(filter(tarfile.TarInfo.isfile, pictures), 51):
                captions[Path(member.name).name] = []
                (folder / Path(member.name).name).write_bytes(pictures.extractfile(member).read())
        for line in (flickr8k / "Flickr8k.token.txt").read_text().splitlines():
            name, _, text = line.partition("\t")
            captions.get(name.partition("#")[0], []).append(text)
    else:
        table = pq.read_table(finished.folder / "data/captions/scenes.parquet")
        for row in table.select(["file", "caption"]).to_pylist():
            captions.setdefault(Path(row["file"]).name, []).append(row["caption"])
            if len(captions) > 51:
                break
            shutil.copy(finished.folder / "data/raw/scenes" / row["file"], folder)
    with (folder.parent / "captions.csv").open("w", newline="") as stream:
        rows = ((name, text) for name in sorted(captions)[:50] for text in captions[name])
        csv.writer(stream).writerows([("file_name", "caption"), *rows])
    return folder


@pytest.fixture
def clean(root, finished, tmp_path):
    """A clone without data and models."""
    made = finished.clone(tmp_path / "clone")
    shutil.copy(root / "Makefile", made.folder)
    (made.folder / ".venv").mkdir()  # it is in place: nothing is installed
    (made.folder / ".venv" / ".ready").touch()
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, made.folder)
        os.utime(made.folder / name, (0, 0))
    made.run("dvc", "cache", "dir", "--local", str(finished.folder / ".dvc" / "cache"))
    made.run("git", "config", "user.name", "New")
    made.run("git", "config", "user.email", "new@localhost")
    made.commit("Makefile")
    return made


class Lines:
    """The lines of README.md. `take` gives the next one that begins with some words."""

    def __init__(self, page):
        shown = page.read_text().split("## Two commands")[1].split("## Results")[0]
        self.all = re.findall(r"^    (.*?)(?:  +#.*)?$", shown, re.MULTILINE)
        self.left = [*self.all]

    def take(self, words):
        line = next(line for line in self.left if line.startswith(words))
        self.left.remove(line)
        return line


@contextmanager
def timed(step):
    begun = time.monotonic()
    yield
    print(f"{time.monotonic() - begun:6.1f} s  {step}")


@contextmanager
def served(workspace, line):
    """The service or demo that a line starts, once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = workspace.start("sh", "-c", f"exec {line} --port {port}")
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            while process.poll() is None:
                with suppress(httpx.ConnectError):
                    ready(client)
                    break
                time.sleep(0.1)
            yield client
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            kill(process, workspace)


@pytest.mark.slow
def test_every_line_of_the_readme_works_in_a_clean_copy(root, clean, photos, monkeypatch):
    lines, folder = Lines(root / "README.md"), clean.folder

    def run(words):
        line = lines.take(words)
        with timed(line):
            return clean.run("sh", "-c", line)

    photos.rename(folder / "photos")
    (photos.parent / "captions.csv").rename(folder / "captions.csv")
    *kept, last = sorted((folder / "photos").iterdir())
    fresh = last.rename(photos.parent / "fresh.jpg")
    shutil.copy(kept[0], kept[2])

    run("make setup")
    (temporary := photos.parent / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    for demo in (lines.take("manymatch demo"), lines.take("manymatch demo photos/")):
        with timed(demo), served(clean, f"{demo} --no-browser") as client:
            assert client.get("/search", params={"q": "a red dog"}).json()["results"]
            assert [*temporary.glob("manymatch-demo-*")]
        assert not [*temporary.glob("manymatch-demo-*")]
    monkeypatch.delenv("TMPDIR")
    assert "50 items" in run("manymatch index photos/ --model flickr8k-vsepp")
    assert run("manymatch search photos.index").count(".jpg") == 5
    with served(clean, lines.take("manymatch serve photos.index")) as client:
        assert client.get("/search", params={"q": "a red dog"}).json()["results"]

    program = [lines.take(words) for words in ("import ", "model = ", "images = ", "texts = ")]
    for name, colour in (("a.jpg", "red"), ("b.png", "blue")):
        Image.new("RGB", (64, 48), colour).save(folder / name)
    program.append(f"assert {lines.take('model.score')}.shape == (2, 1)")
    with timed("five lines of Python"):
        clean.run(str(warm_commands.spawn()), "-c", "\n".join(program))

    ended = run("make repro")
    assert "reports/index.html" in ended and "cora" in ended
    assert "50 pictures (40 train, 5 validation, 5 test)" in run("manymatch init birds")
    run("dvc repro evaluate@birds-vsepp")
    shown = json.loads((folder / "reports/runs/birds/vsepp/samples.json").read_text())
    # Drawn pictures that differ in a detail are near-duplicates too.
    metadata = pq.read_schema(folder / "data/captions/birds.parquet").metadata
    known = json.loads(metadata[NEAR_DUPLICATES])
    assert shown["near_duplicates"]["copies"] == known["copies"]
    assert any({kept[0].stem, kept[2].stem} <= {*dict(group)} for group in known["groups"])
    assert shown["captions"][0]["thumbnail"]
    page = (root / "docs" / "own-data.md").read_text()
    *trained, stored, searched = page.split("```sh\n")[1].split("```")[0].splitlines()
    assert {*trained} < {*lines.all} and "50 items" in clean.run("sh", "-c", stored)
    assert clean.run("sh", "-c", searched).count(".jpg") == 5
    run("git add presets reports")
    run("manymatch models promote birds/vsepp")
    index = "manymatch index photos/ --model birds"
    update = next(line for line in lines.left if line.startswith(index))
    assert "50 items" in run(index)
    serve = lines.take("manymatch serve birds.index")
    with timed(f"{serve}, and an update"), served(clean, serve) as client:
        fresh.rename(folder / "photos" / "fresh.jpg")
        assert "51 items" in clean.run("sh", "-c", update)
        client.post("/reload")
        found = client.get("/search", params={"q": "a dog", "k": 51}).json()["results"]
        assert len(found) == 51 and "fresh.jpg" in {item["path"] for item in found}

    left = [line for line in lines.left if not re.match("|".join(ELSEWHERE), line)]
    assert left == []
    unused = [words for words in ELSEWHERE if not any(re.match(words, line) for line in lines.left)]
    assert unused == []
