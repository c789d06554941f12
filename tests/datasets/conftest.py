"""A made-up Flickr8k of six images, in both forms, for the tests of the dataset room."""

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from dataset_stages import Stages
from own_forms import Birds

from manymatch.datasets.fetching import transfer

SPLITS = {"train": "ab", "val": "cd", "test": "ef"}
LISTS = {
    "train": "Flickr_8k.trainImages.txt",
    "val": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}


class Folder:
    """A folder with the dataset's files under their usual names, which tests may damage."""

    def __init__(self, path):
        self.path = path
        (path / "Images").mkdir(parents=True)
        for image in "abcdefx":  # x is in no split
            (path / "Images" / f"{image}.jpg").write_bytes(b"picture " + image.encode())
        lines = [f"{i}.jpg#{k}\tA {i} number {k} .\n" for i in "fedcbax" for k in (1, 0)]
        lines.append("gone.jpg.1#0\tNobody has this image .\n")
        self.write("Flickr8k.token.txt", "".join(lines))
        for split, images in SPLITS.items():
            self.write(LISTS[split], "".join(f"{image}.jpg\n" for image in images))
        self.write("ExpertAnnotations.txt", "e.jpg\tf.jpg#0\t3\t3\t3\ne.jpg\tf.jpg#1\t3\t3\t2\n")
        crowd = (
            "f.jpg\te.jpg#0\t0.5\t2\t2\nf.jpg\te.jpg#1\t0.333333\t1\t2\ne.jpg\te.jpg#0\t1\t3\t0\n"
        )
        self.write("CrowdFlowerAnnotations.txt", crowd)

    def __fspath__(self):
        return str(self.path)

    def write(self, name, content):
        target = self.path / name
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def read(self, name):
        return (self.path / name).read_text()

    def add(self, name, content):
        with (self.path / name).open("ab") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)

    def to_karpathy(self):
        """Replace the captions by one JSON file, and return its content."""
        images = [
            {
                "filename": f"{image}.jpg",
                "split": split,
                "sentences": [{"raw": f"A {image} number {k} ."} for k in (0, 1)],
            }
            for split, members in SPLITS.items()
            for image in members
        ]
        value = {"images": images, "dataset": "flickr8k"}
        self.write("dataset_flickr8k.json", json.dumps(value))
        for name in ("Flickr8k.token.txt", *LISTS.values()):
            (self.path / name).unlink()
        return value


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "given")


@pytest.fixture
def stages_of(tmp_path):
    return lambda name: Stages(name, tmp_path)


@pytest.fixture
def stages(request, stages_of):
    """The stages of the data set after which the test's file is called."""
    return stages_of(request.module.__name__.rpartition("test_")[2].removesuffix("_sources"))


@pytest.fixture
def server(folder, monkeypatch):
    """Serves the test's `folder`; `asked` has the lines of the log."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    asked = []
    monkeypatch.setattr(transfer, "_PAUSES", (0,))
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    http.url, http.asked = f"http://127.0.0.1:{http.server_port}", asked
    yield http
    http.shutdown()
    http.server_close()


@pytest.fixture
def target(tmp_path, monkeypatch):
    """A file to download. There are three attempts without a pause."""
    monkeypatch.setattr(transfer, "_PAUSES", (0.0, 0.0))
    return tmp_path / "waiting" / "file.bin"


@pytest.fixture
def birds(tmp_path):
    """The pictures and captions of the tests of own data."""
    return Birds(tmp_path)
