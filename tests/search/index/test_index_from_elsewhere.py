"""An index that somebody else made: files that do not fit each other are refused in one line."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hashed_files import edit, reseal
from made_indexes import made_index

from manymatch import Index
from manymatch.util.errors import DataError, ManyMatchError
from manymatch.util.seal import NAME

CODES = "codes/codes.json"


@pytest.fixture(scope="module")
def made(vsepp_folder, pictures, tmp_path_factory):
    """The index of five pictures."""
    target = tmp_path_factory.mktemp("made") / "album.index"
    return made_index(pictures[0].parent, vsepp_folder, target).folder


@pytest.fixture
def target(made, tmp_path):
    """A copy of the index, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "album.index"))


def refused(target, model):
    """The line by which the index is refused."""
    with pytest.raises(ManyMatchError) as raised:
        index = Index.open(target, model)
        answer = index.search("two dogs")
        index.item(answer.results[0].id)
        index.similar(answer.results[0].id)
    assert str(raised.value).isprintable()
    return str(raised.value)


def table(change):
    def changed(target):
        path = target / "items.parquet"
        pq.write_table(change(pq.read_table(path)), path)

    return changed


def column(name, cells):
    return table(
        lambda items: items.set_column(items.column_names.index(name), name, cells(items[name]))
    )


def first_null(cells):
    return pa.array([None, *cells.to_pylist()[1:]], cells.type)


def array(name, content):
    return lambda target: np.save(target / f"{name}.npy", content)


def lie(name, **values):
    return lambda target: edit(target / name, **values)


def bound(place, value):
    def changed(target):
        path = target / "codes" / "errors.bin"
        numbers = np.fromfile(path, np.float32)
        numbers[int(place * (len(numbers) - 1))] = value
        numbers.tofile(path)

    return changed


LIES = [
    *({key: 0} for key in ("count", "elements", "size", "numbers")),
    *({"size": value} for value in ("1", 2**62)),
    *({"longest": value} for value in ("nan", -1, 1e300)),
    *({"further": 1}, {"method": "maxmatch"}, {"side": "texts"}),
]
"""Values of `codes.json` that are not those of the codes."""
FAULTS = {
    "album.index": [
        *(column(name, first_null) for name in ("id", "path", "row", "size", "sha256")),
        *(column(name, lambda c: pa.array(range(len(c)))) for name in ("id", "path", "sha256")),
        *(column("path", lambda c, of=of: c.cast(of)) for of in (pa.binary(), pa.large_string())),
        column("path", lambda c: pa.array([b"\xff%d" % n for n in range(len(c))]).view("string")),
        column("row", lambda c: pa.array(range(1, len(c) + 1))),
        column("row", lambda c: c.cast(pa.float64())),
        column("mtime_ns", lambda c: c.cast(pa.string())),
        *(column(name, lambda c: pa.array(["same"] * len(c))) for name in ("id", "path")),
        table(lambda items: items.append_column("id", items["path"])),
        table(lambda t: t.append_column("a", t["path"]).append_column("a", t["path"])),
        table(lambda items: items.drop_columns("path")),
        table(lambda items: items.slice(0, len(items) - 1)),
        table(lambda items: items.slice(0, 0)),
    ],
    "vectors": [lambda target: (target / "vectors.npy").unlink()],
    **{
        f"{name}.npy": [array(name, np.ones((5, 3), np.float32))]
        for name in ("other", "mask", "log_variance")
    },
    "codes": [
        *(lie(CODES, **values) for values in LIES),
        *(lambda target, t=text: (target / CODES).write_text(t) for text in ("{}", "[]", "")),
        array("codes/basis", np.zeros((256, 2))),
        *(array("codes/basis", np.full((256, 256), value)) for value in (np.nan, np.inf)),
        array("codes/means", np.zeros((1, 1, 256), np.float32)),
        *(array("codes/means", np.full((1, 1, size), np.nan)) for size in (7, 256)),
        *(array(f"codes/{name}", np.array(["a"])) for name in ("basis", "means")),
    ],
    "errors.bin": [bound(0, np.nan), bound(0.5, -1), bound(1, np.inf), bound(0, -np.inf)],
    "above its bound": [lambda target: zeroed(target / "codes" / "codes.bin")],
    "": [
        *(lie("manifest.json", items=number) for number in (11, 0, -1)),
        lie("manifest.json", broken=-1),
        *(lie("manifest.json", identity=facts) for facts in ({}, {"method": "vsepp"})),
        lie("manifest.json", side="sounds"),
    ],
}
"""What the line names, and changes after which the index is refused."""


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize(
    ("words", "change"), [(words, change) for words, some in FAULTS.items() for change in some]
)
def test_files_that_do_not_fit_are_refused(words, change, target, vsepp):
    change(target)
    reseal(target)
    assert words in refused(target, vsepp)


@pytest.mark.parametrize("codes", [True, False])
def test_other_embeddings(codes, target, vsepp):
    whole = np.load(target / "vectors.npy")
    if not codes:
        shutil.rmtree(target / "codes")
    for other in (
        *(whole[:, 0], whole[None], np.asfortranarray(whole.repeat(2, 1)), whole[..., :-1]),
        *(np.concatenate([whole, whole], 1), whole[:, :0], whole[..., :0], whole[:-1]),
        *(whole.astype(kind) for kind in ("i1", "c8", "U5", ">f4", "f8", "f2")),
        *(np.full_like(whole, value) for value in (3e38, np.nan, -np.inf)),
    ):
        np.save(target / "vectors.npy", other)
        reseal(target)
        refused(target, vsepp)


def test_variances_that_no_model_gives(make_model, pictures, tmp_path):
    index = made_index(pictures[0].parent, make_model("msrm"), tmp_path / "index")
    model, path = index.model, index.folder / "log_variance.npy"
    whole = np.load(path)
    for value in (-90, 90, 1e38, -1e38):
        np.save(path, np.full_like(whole, value))
        reseal(index.folder)
        assert "variance" in refused(index.folder, model)
    path.unlink()
    reseal(index.folder)
    assert "log_variance" in refused(index.folder, model)


def test_captions_without_texts_and_files_that_are_not_those_of_the_seal(
    vsepp_folder, vsepp, tmp_path
):
    source = tmp_path / "captions.txt"
    source.write_text("a dog\ntwo dogs")
    index = made_index(source, vsepp_folder, tmp_path / "index")
    index.check()
    for name in ("vectors.npy", "items.parquet"):
        flipped(index.folder / name)
        with pytest.raises(DataError, match=f"{name}: the content differs"):
            index.check()
        flipped(index.folder / name)
    for change in (
        column("text", first_null),
        column("text", lambda c: pa.array(range(len(c)))),
        table(lambda items: items.drop_columns("text")),
    ):
        change(index.folder)
        reseal(index.folder)
        assert "'text'" in refused(index.folder, vsepp)


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("SEAL.json), so unfinished or of an older", lambda target: (target / NAME).unlink()),
        ("manifest.json: the content differs", lambda target: flipped(target / "manifest.json")),
        ("vectors.npy: damaged", lambda target: cut(target / "vectors.npy")),
        ("codes.bin: the content differs", lambda target: zeroed(target / "codes" / "codes.bin")),
        ("codes.json: no such file", lambda target: (target / CODES).unlink()),
        ("further.npy: not in the seal", array("codes/further", np.ones(2))),
    ],
)
def test_what_is_not_sealed_is_refused_with_the_command_that_mends_it(words, change, target, vsepp):
    change(target)
    line = refused(target, vsepp)
    assert words in line and "'manymatch index'" in line


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def flipped(path):
    """Flip one bit of a digit or letter in the middle of a file."""
    content = bytearray(path.read_bytes())
    at = next(at for at in range(len(content) // 2, len(content)) if chr(content[at]).isalnum())
    content[at] ^= 1
    path.write_bytes(content)
