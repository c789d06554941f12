"""An index that somebody else made: files that do not fit each other are refused in one line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hashed_files import edit
from made_indexes import made_index

from manymatch import Index, Model
from manymatch.util.errors import DataError, ManyMatchError
from manymatch.util.files import sha256

ITEMS = "items.parquet"
Refused = Callable[[], str]


def accept(target: Path) -> None:
    """Enter the present hashes of all files into the manifest, as the author of a lie would."""
    files = [*target.glob("*.npy"), *target.glob("codes/*")]
    hashes = {path.relative_to(target).as_posix(): sha256(path) for path in files}
    edit(target / "manifest.json", files=hashes)


@pytest.fixture(scope="module")
def made(
    vsepp_folder: Path, pictures: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The index of five pictures."""
    target = tmp_path_factory.mktemp("made") / "album.index"
    return made_index(pictures[0].parent, vsepp_folder, target).folder


@pytest.fixture
def target(made: Path, tmp_path: Path) -> Path:
    """A copy of the index, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "album.index"))


@pytest.fixture
def refused(target: Path, vsepp: Model) -> Callable[[], str]:
    """The line by which the index is refused."""

    def line() -> str:
        with pytest.raises(ManyMatchError) as raised:
            use(target, vsepp)
        assert str(raised.value).isprintable()
        return str(raised.value)

    return line


def use(target: Path, model: Model) -> None:
    index = Index.open(target, model)
    answer = index.search("two dogs")
    index.item(answer.results[0].id)
    index.similar(answer.results[0].id)


def column(name: str, cells: Any) -> Callable[[pa.Table], pa.Table]:
    return lambda items: items.set_column(items.column_names.index(name), name, cells(items[name]))


def first_null(cells: pa.ChunkedArray) -> pa.Array:
    return pa.array([None, *cells.to_pylist()[1:]], cells.type)


@pytest.mark.parametrize(
    "change",
    [
        *(column(name, first_null) for name in ("id", "path", "row", "size", "sha256")),
        *(column(name, lambda c: pa.array(range(len(c)))) for name in ("id", "path", "sha256")),
        *(column(name, lambda c: c.cast(pa.binary())) for name in ("id", "path")),
        *(column(name, lambda c: c.cast(pa.large_string())) for name in ("id", "path")),
        column("path", lambda c: pa.array([b"\xff%d" % n for n in range(len(c))]).view("string")),
        column("row", lambda c: pa.array(range(1, len(c) + 1))),
        column("row", lambda c: c.cast(pa.float64())),
        column("mtime_ns", lambda c: c.cast(pa.string())),
        column("id", lambda c: pa.array(["same"] * len(c))),
        column("path", lambda c: pa.array(["same.png"] * len(c))),
        lambda items: items.append_column("id", items["path"]),
        lambda items: items.append_column("a", items["path"]).append_column("a", items["path"]),
        lambda items: items.drop_columns("path"),
        lambda items: items.slice(0, len(items) - 1),
        lambda items: items.slice(0, 0),
    ],
)
def test_other_tables_of_items(
    change: Callable[[pa.Table], pa.Table], target: Path, refused: Refused
) -> None:
    pq.write_table(change(pq.read_table(target / ITEMS)), target / ITEMS)
    assert "album.index" in refused()


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v[:, 0],
        lambda v: v[None],
        np.asfortranarray,
        lambda v: v[..., :-1],
        lambda v: np.concatenate([v, v], 1),
        lambda v: v[:, :0],
        lambda v: v[..., :0],
        lambda v: v[:-1],
        *(lambda v, kind=kind: v.astype(kind) for kind in ("i1", "c8", "U5", ">f4", "f8", "f2")),
        lambda v: np.full_like(v, 3e38),
        lambda v: np.full_like(v, np.nan),
        lambda v: np.full_like(v, -np.inf),
    ],
)
@pytest.mark.parametrize("codes", [True, False])
def test_other_embeddings(change: Any, codes: bool, target: Path, refused: Refused) -> None:
    np.save(target / "vectors.npy", change(np.load(target / "vectors.npy")))
    if not codes:
        for path in (target / "codes").iterdir():
            path.unlink()
        (target / "codes").rmdir()
    accept(target)
    refused()


def test_further_arrays(target: Path, refused: Refused) -> None:
    for name in ("log_variance", "slots", "mask", "other"):
        np.save(target / f"{name}.npy", np.ones((5, 3), np.float32))
        accept(target)
        assert f"{name}.npy" in refused()
        (target / f"{name}.npy").unlink()


@pytest.mark.parametrize("name", ["log_variance.npy", "vectors.npy"])
def test_missing_arrays_of_a_model(
    name: str, make_model: Callable[..., Path], pictures: list[Path], tmp_path: Path
) -> None:
    index = made_index(pictures[0].parent, make_model("msrm"), tmp_path / "index")
    model = index.model
    (index.folder / name).unlink()
    accept(index.folder)
    with pytest.raises(DataError, match=name.removesuffix(".npy")):
        use(index.folder, model)


@pytest.mark.parametrize("value", [-90, 90, 1e38, -1e38])
@pytest.mark.parametrize("method", ["msrm", "pcme"])
def test_variances_that_no_model_gives(
    method: str, value: float, make_model: Callable[..., Path], pictures: list[Path], tmp_path: Path
) -> None:
    index = made_index(pictures[0].parent, make_model(method), tmp_path / "index")
    path = index.folder / "log_variance.npy"
    np.save(path, np.full_like(np.load(path), value))
    accept(index.folder)
    with pytest.raises(DataError, match="variance"):
        use(index.folder, index.model)


SIZES = ("count", "elements", "size", "numbers")


@pytest.mark.parametrize(
    "lies",
    [
        *({key: 0} for key in SIZES),
        *({key: "1"} for key in SIZES),
        *({key: 2**62} for key in SIZES),
        *({"longest": value} for value in ("nan", -1, 1e300, None, [1])),
        {"further": 1},
        {"method": "maxmatch"},
        {"side": "texts"},
        {"side": "sounds"},
    ],
    ids=str,
)
def test_lies_about_the_sizes_of_codes(
    lies: dict[str, Any], target: Path, refused: Refused
) -> None:
    edit(target / "codes" / "codes.json", **lies)
    accept(target)
    assert "codes" in refused()


def test_codes_without_a_size(target: Path, refused: Refused) -> None:
    path = target / "codes" / "codes.json"
    path.write_text("{}")
    accept(target)
    assert "codes.json" in refused()


@pytest.mark.parametrize("name", ["basis", "means"])
@pytest.mark.parametrize(
    "array",
    [
        np.zeros((256, 2)),
        np.zeros((1, 1, 7)),
        np.zeros((1, 1, 256), np.float32),
        np.full((1, 1, 256), np.nan),
        np.full((256, 256), np.inf),
        np.zeros(()),
        np.array(["a"]),
    ],
)
def test_other_arrays_of_codes(name: str, array: Any, target: Path, refused: Refused) -> None:
    np.save(target / "codes" / f"{name}.npy", array)
    assert "damaged" in refused()  # the manifest does not name the file
    accept(target)
    assert "codes" in refused()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0])
def test_bounds_that_bound_nothing(value: float, target: Path, refused: Refused) -> None:
    path = target / "codes" / "errors.bin"
    numbers = np.fromfile(path, np.float32)
    for place in (0, len(numbers) // 2, -1):
        changed = numbers.copy()
        changed[place] = value
        changed.tofile(path)
        assert "damaged" in refused()
        accept(target)
        assert "errors.bin" in refused()
        numbers.tofile(path)
        accept(target)


def test_codes_of_other_vectors_are_never_called_exact(target: Path, refused: Refused) -> None:
    path = target / "codes" / "codes.bin"
    path.write_bytes(bytes(path.stat().st_size))
    assert "damaged" in refused()
    accept(target)
    assert "above its bound" in refused()


def test_captions_without_texts(vsepp_folder: Path, vsepp: Model, tmp_path: Path) -> None:
    source = tmp_path / "captions.txt"
    source.write_text("a dog\ntwo dogs")
    target = made_index(source, vsepp_folder, tmp_path / "index").folder
    items = pq.read_table(target / ITEMS)
    for change in (
        column("text", lambda c: pa.array(range(len(c)))),
        column("text", first_null),
        lambda table: table.drop_columns("text"),
    ):
        pq.write_table(change(items), target / ITEMS)
        with pytest.raises(DataError, match="'text'"):
            Index.open(target, vsepp)


@pytest.mark.parametrize(
    "lies",
    [
        {"items": 11},
        {"items": 0},
        {"items": -1},
        {"broken": -1},
        {"identity": {}},
        {"identity": {"method": "vsepp"}},
        {"identity": {"method": 5}},
        {"side": "sounds"},
        {"files": ["vectors.npy"]},
    ],
    ids=str,
)
def test_other_facts_of_the_manifest(lies: dict[str, Any], target: Path, refused: Refused) -> None:
    edit(target / "manifest.json", **lies)
    refused()


def test_embeddings_that_are_damaged_are_found_by_a_check(target: Path, vsepp: Model) -> None:
    index = Index.open(target, vsepp)
    index.check()
    path = target / "vectors.npy"
    vectors = np.load(path)
    vectors[3] *= 0.5
    np.save(path, vectors)
    with pytest.raises(DataError, match=r"vectors\.npy: damaged"):
        index.check()
