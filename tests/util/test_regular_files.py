"""Every reader of files from elsewhere refuses pipes, devices, sockets and folders at once."""

import gzip
import os
import signal
import socket

import pytest

from manymatch.config.strict import read_yaml
from manymatch.datasets.fetching.archives import extract, is_archive, member_names, whole_archive
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.image_files import copy_images
from manymatch.datasets.karpathy import holds_karpathy
from manymatch.evaluation.external.arrays import open_array
from manymatch.evaluation.protocols.relevance import RELEVANCE
from manymatch.experiments.engine import Run
from manymatch.features.importers.clip_vectors import open_vectors
from manymatch.features.store import FeatureStore
from manymatch.model.checkpoint import read_weights
from manymatch.networks.torch_file import load_tensors
from manymatch.results.machine import MachineRecord
from manymatch.shards.fetch import check_shards
from manymatch.shards.index import Split
from manymatch.util import text_lines
from manymatch.util.errors import ConfigError, ManyMatchError, SourceError
from manymatch.util.files import sha256
from manymatch.util.images import read_image
from manymatch.util.json_file import read_object
from manymatch.util.json_stream import elements
from manymatch.util.numpy_file import feature_array, load_array
from manymatch.util.parquet_file import open_table, read_table
from manymatch.util.pickles import read_pickle
from manymatch.util.regular_file import open_regular, read_regular
from manymatch.util.seal import sealed
from manymatch.util.text_lines import numbered_lines


def vectors(path):
    with open_vectors(path):
        pass


SPLIT = Split(shards=["shard.tar"], shard_images=[1], images=1, captions=1)


def sealed_shard(path):
    """A shard whose seal names the special file."""
    with sealed(path.parent / "sealed") as partial:
        partial.mkdir()
        (partial / path.name).touch()
    path.rename(path.parent / "sealed" / path.name)
    check_shards(path.parent / "sealed", SPLIT)


def test_a_text_that_unpacks_to_far_more_than_texts_do_is_refused(tmp_path, monkeypatch):
    path, text = tmp_path / "captions.txt.gz", b"a dog\n" * 10_000
    for encoded in (text, text.decode().encode("utf-16")):
        path.write_bytes(gzip.compress(encoded))
        assert len(list(numbered_lines(path))) == 10_000  # a small file may
        with monkeypatch.context() as patch:
            patch.setattr(text_lines, "_UNPACKED", 1_000)
            patch.setattr(text_lines, "_RATIO", 10)
            with pytest.raises(ManyMatchError, match=r"unpacks to more than [\d,]+ bytes.*gunzip"):
                list(numbered_lines(path))


READERS = {
    "archive": lambda path: extract(path, path.with_name("out")),
    "archive, checked": whole_archive,
    "archive, listed": member_names,
    "copy": lambda path: copy_file(path, path.with_name("out")),
    "copy of images.jpg": lambda path: copy_images(path.parent, path.with_name("out")),
    "YAML": read_yaml,
    "JSON": read_object,
    "JSON stream": lambda path: list(elements(path, ["a"])),
    "lines": lambda path: list(numbered_lines(path)),
    "lines.gz": lambda path: list(numbered_lines(path)),
    "image": read_image,
    "array": load_array,
    "mapped array": lambda path: load_array(path, mapped=True),
    "features of images": lambda path: feature_array(path, "images", "regions", "width"),
    "pickle": read_pickle,
    "tensors": load_tensors,
    "Parquet": lambda path: open_table(path, ["a"], "captions"),
    "Parquet, whole": lambda path: read_table(path, RELEVANCE),
    "feature store": FeatureStore,
    "hash": sha256,
    "weights.safetensors": read_weights,
    "shard.tar": sealed_shard,
    **{f"vectors.{end}": vectors for end in ("pkl", "pt", "npz", "h5")},
    **{
        f"scores.{end}": lambda path: open_array(str(path), ([], []))
        for end in ("npy", "npz", "safetensors", "h5", "pt", "json")
    },
}
"""The readers on which all others rest."""


def pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def listening(path):
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(path))


@pytest.fixture(params=[pipe, endless, listening], ids=lambda make: make.__name__)
def special(request, tmp_path, monkeypatch):
    """Makes a special file. What blocks for 20 s fails."""
    monkeypatch.chdir(tmp_path)  # names of sockets are short

    def interrupt(*_):
        pytest.fail("still reading")

    signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(20)
    yield lambda name: (request.param(tmp_path / name), tmp_path / name)[1]
    signal.alarm(0)


# The kinds of special files cannot fail apart: one reader tries all of them.
EVERY = [(pipe, name) for name in READERS] + [(endless, "lines"), (listening, "lines")]


@pytest.mark.parametrize(("special", "name"), EVERY, indirect=["special"])
def test_special_files_are_refused_in_one_line(special, name):
    with pytest.raises(ManyMatchError) as caught:
        READERS[name](special(name.rpartition(" ")[2]))
    line = str(caught.value)
    assert "\n" not in line and ("not a regular file" in line or "cannot be read" in line)


def test_special_files_are_no_candidates_and_no_results_of_earlier_runs(special):
    """Checks of files that may have another form say no."""
    assert not is_archive(special("archive"))
    assert not holds_karpathy(special("captions"), "a.json")
    assert MachineRecord.read(special("record.json")).root == {}
    run = Run("run", None, 0, "code", special("result.json").parent)
    assert run.numbers() is None


def test_a_link_is_read_and_what_cannot_be_opened_is_one_line(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"content"
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "secret").touch(0)
    for name in (".", "x" * 300, "file/x", "loop", "a\0b", *["secret"] * (os.geteuid() != 0)):
        with pytest.raises(ManyMatchError, match=r"cannot be read|folder"):
            open_regular(tmp_path / name)


def test_a_folder_with_hardly_a_picture_is_refused_early(tmp_path, monkeypatch):
    from manymatch.search.index.sources import PictureFolder
    from manymatch.util.regular_file import MOST_OTHERS, PICTURES, files_below

    for number in range(8):
        (tmp_path / f"{number}.o").touch()
    (tmp_path / "a.JPG").touch()
    monkeypatch.setenv(MOST_OTHERS, "8")
    assert [entry.path for entry in PictureFolder(tmp_path).entries()] == ["a.JPG"]
    monkeypatch.setenv(MOST_OTHERS, "7")
    assert len(list(files_below(tmp_path, PICTURES))) == 1  # ten others for each picture
    (tmp_path / "a.JPG").unlink()
    for walk in (PictureFolder(tmp_path).entries, lambda: files_below(tmp_path, (".txt",))):
        with pytest.raises(SourceError, match=rf"0 of the first 8 .* set {MOST_OTHERS}") as raised:
            list(walk())
        assert "\n" not in str(raised.value)
    for number in range(8):  # texts are looked for beside pictures
        (tmp_path / f"{number}.o").rename(tmp_path / f"{number}.png")
    assert list(files_below(tmp_path, (".txt",))) == []
    monkeypatch.setenv(MOST_OTHERS, "many")
    with pytest.raises(ConfigError, match=f"{MOST_OTHERS}=many: expected a whole number"):
        list(files_below(tmp_path, PICTURES))
