"""Faulty files of other models: every fault is one line."""

import io
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from external_files import IMAGES, TEXTS, score, score_of
from numpy.lib.format import write_array_header_2_0

from manymatch.evaluation.external.score import ExternalFiles
from manymatch.evaluation.external.split_table import read_split
from manymatch.evaluation.protocols.relevance import read_labels
from manymatch.util.errors import ConfigError, DataError, ManyMatchError


def _faults(files):
    def txt(name, ids):
        (files.folder / name).write_text("\n".join(ids))
        return files.folder / name

    nan = files.table.copy()
    nan[2, 3] = np.nan
    infinite = files.images.copy()
    infinite[4, 0] = np.inf
    table, images = files.made("s.npy", files.table), files.made("i.npy", files.images)
    (files.folder / "broken.npz").write_bytes(b"PK broken")
    (files.folder / "broken.safetensors").write_bytes(b"no")
    (files.folder / "broken.h5").write_bytes(b"no")
    np.save(files.folder / "pickled.npy", np.array([{}]), allow_pickle=True)
    _damage(files, "damaged.npz", lambda path: np.savez_compressed(path, a=_noise()))
    _damage(files, "damaged.h5", lambda path: _packed(path, _noise()))
    Path(files.made("renamed.npz", files.table)).rename(files.folder / "zip.npy")
    Path(files.made("renamed.npy", files.table)).rename(files.folder / "plain.npz")
    h5py.File(files.folder / "bare.h5", "w").close()
    (files.folder / "words.npy").write_text("1,2,3")
    for kind in ("npy", "npz", "safetensors", "h5"):
        (files.folder / f"folder.{kind}").mkdir()
    with h5py.File(files.folder / "empty.h5", "w") as file:
        file["nothing"] = h5py.Empty("f4")
    with zipfile.ZipFile(files.folder / "words.npz", "w") as archive:
        archive.writestr("a.txt", "words")
    _write_foreign(files)
    scores = {
        **_FOREIGN,
        "zip.npy": "an archive of arrays, not one",
        "plain.npz": "not an archive of arrays",
        "words.npz": "words.npz:a.txt: not an array",
        "damaged.npz": "cannot be read as .npz",
        "damaged.h5": "cannot be read as .h5",
        "empty.h5": "empty.h5:nothing: an empty dataset",
        "bare.h5": "bare.h5: no array",
        "words.npy": "words.npy: not an array: .*data\\.$",
        **{f"folder.{kind}": "a folder" for kind in ("npy", "npz", "safetensors", "h5")},
        "no.npy": "no such file",
        "scores.pkl": "unknown kind.*.npy",
        "broken.npz": "cannot be read as .npz",
        "broken.safetensors": "cannot be read as",
        "broken.h5": "cannot be read as .h5",
        "pickled.npy": "pickled.npy: not an array",
    }
    arrays = {
        "turned": (files.table.T, "9 images x 5.*Transpose"),
        "shape": (files.table[:4], "4 images x 9 .*5 x 9"),
        "cube": (files.table[None], "not 1 x 5 x 9"),
        "nan": (nan, "NaN or infinite"),
        "text": (np.array([["a"] * 9] * 5), "not real numbers"),
    }
    embeddings = {
        "inf": (infinite, files.texts, "NaN or infinite"),
        "no vectors": (np.zeros((5, 0, 4)), files.texts, "5 x 0 x 4: no numbers"),
        "no width": (np.zeros((5, 0)), np.zeros((9, 0)), "5 x 0: no numbers"),
        "sizes": (files.images, files.texts[:, :3], "vectors of 4 numbers, .* of 3"),
    }
    ids = {
        "unknown": (txt("u.txt", [*IMAGES[:4], "other"]), "image 'other' is not in the split"),
        "twice": (txt("d.txt", [*IMAGES[:4], "i0"]), r"image 'i0' twice \(row 5, first in row 1\)"),
        "no ids": (files.folder / "no.txt", "no such file"),
        "zip of ids": (files.folder / "zip.npy", "zip.npy: an archive of arrays"),
    }
    few = files.made("few.npy", files.table[:, :8])
    fewer = {"scores": few, "caption_ids": txt("f.txt", TEXTS[:8])}
    return {
        **{name: ({"scores": f"{files.folder}/{name}"}, words) for name, words in scores.items()},
        **{
            name: ({"scores": files.made(f"{name}.npy", array)}, words)
            for name, (array, words) in arrays.items()
        },
        **{
            name: (
                {"images": files.made(f"{name}-i.npy", i), "texts": files.made(f"{name}-t.npy", t)},
                words,
            )
            for name, (i, t, words) in embeddings.items()
        },
        **{
            name: ({"scores": table, "image_ids": path}, words)
            for name, (path, words) in ids.items()
        },
        "swapped": (
            {"images": files.made("x.npy", files.texts), "texts": images},
            "9 images x 5 captions.*Swap the files of --images and --texts",
        ),
        "fewer": (fewer, "caption 't8' is missing.*8 of 9"),
        "both": ({"scores": table, "images": images, "texts": images}, "either --scores, or"),
        "half": ({"images": images}, "either --scores, or"),
        "none": ({}, "either --scores, or"),
    }


_FOREIGN = {
    "code.pt": "dense tensors and plain data alone",
    "words.pt": "words.pt: no tensor of plain numbers",
    "sparse.pt": "sparse.pt: .*dense tensors.*_rebuild_sparse_tensor",
    "meta.pt": "meta.pt: .*dense tensors.*_rebuild_meta_tensor",
    "bytes.pt": "bytes.pt: .*dense tensors.*bytearray",
    "old.pt": "old.pt: .*dense tensors.*bytearray",
    "numbered.pt": r"several arrays: 1, 2. Name one as numbered\.pt:KEY",
    "expanded.pt": "fewer numbers than its shape .1000000, 1000000",
    "mask.pt": "mask.pt: torch.bool are not real numbers",
    "named.pt": r"several arrays: a, b. Name one as named\.pt:KEY",
    "few.json": "few.json: scores of 2 of 45 pairs.*task DATASET-pairs-t2i",
    "other.json": "'q1' and 'd1' are not an image and a caption",
    "lines.json": r"'a\\nb' and 'd1' are not an image",
    "splits.json": "several splits",
    "twice.json": "'t0' occurs twice",
    "outer.json": "'i0' occurs twice",
    "metrics.json": "no scores of pairs.*metrics alone, such as CLIP_benchmark",
    "nan.json": "nan.json: .*not valid JSON",
    "cut.json": "cut.json: .*not valid JSON",
    "deep.json": "more than 100 lists and objects",
    "list.json": "no scores of pairs",
    "no.json": "no such file",
}
"""Files of torch, mteb and CLIP_benchmark, and words of each fault."""


def _write_foreign(files):
    tensors = {
        "code.pt": Path("x"),
        "words.pt": ["a", "b"],
        "sparse.pt": torch.eye(3).to_sparse(),
        "meta.pt": torch.empty(5, 9, device="meta"),
        "bytes.pt": bytearray(5),
        "numbered.pt": {1: torch.ones(5, 9), 2: torch.ones(5, 9)},
        "expanded.pt": torch.ones(1).expand(10**6, 10**6),
        "mask.pt": torch.ones(5, 9, dtype=torch.bool),
        "named.pt": {"a": torch.ones(5, 9), "b": torch.ones(5, 9)},
    }
    for name, value in tensors.items():
        torch.save(value, files.folder / name)
    torch.save(bytearray(5), files.folder / "old.pt", _use_new_zipfile_serialization=False)
    texts = {
        "few.json": '{"default": {"test": {"i0": {"t0": 1.5, "t1": 2}}}}',
        "other.json": '{"default": {"test": {"q1": {"d1": 1.5}}}}',
        "lines.json": '{"default": {"test": {"a\\nb": {"d1": 1.5}}}}',
        "splits.json": '{"default": {"test": {"i0": {"t0": 1}}, "dev": {"i0": {"t1": 1}}}}',
        "twice.json": '{"default": {"test": {"i0": {"t0": 1}, "i1": {"t0": 1, "t0": 2}}}}',
        "outer.json": '{"default": {"test": {"i0": {"t0": 1}, "i0": {"t1": 2}}}}',
        "metrics.json": '{"dataset": "x", "metrics": {"image_retrieval_recall@5": 0.5}}',
        "nan.json": '{"default": {"test": {"i0": {"t0": NaN}}}}',
        "cut.json": '{"default": {"test": {"i0": {"t0": 1.5, "t1',
        "deep.json": '{"a":' * 200,
        "list.json": "[[[[1, 2]]]]",
    }
    for name, text in texts.items():
        (files.folder / name).write_text(text)


def _noise():
    return np.random.default_rng(3).normal(size=(5, 9)).astype("f4")


def _packed(path, array):
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=array, compression="gzip")


def _damage(files, name, write):
    """The file, with bytes changed where the numbers are."""
    path = files.folder / name
    write(path)
    content = bytearray(path.read_bytes())
    middle = len(content) - 120 if path.suffix == ".h5" else len(content) // 2
    content[middle : middle + 40] = bytes(40)
    path.write_bytes(content)


@pytest.mark.filterwarnings("error")  # a warning would be a second line
def test_every_fault_is_one_line(files):
    for name, (made, message) in _faults(files).items():
        with pytest.raises(ManyMatchError, match=message) as fault:
            score_of(files, **made)
        assert "\n" not in str(fault.value), name


def test_a_packed_array_of_another_shape_is_not_unpacked(files):
    """A header that claims 4 TB of zeros, which pack well."""
    header = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**6)}
    write_array_header_2_0(header, shape)
    with zipfile.ZipFile(files.folder / "bomb.npz", "w") as archive:
        archive.writestr("a.npy", header.getvalue())
    with pytest.raises(DataError, match=r"bomb\.npz:a: 1,000,000 images x 1,000,000 captions"):
        score_of(files, scores=f"{files.folder}/bomb.npz")


@pytest.mark.parametrize(
    "text, message",
    [
        ("image_id,caption_id\na,1\nb,1\n", r"caption '1' twice \(row 2.*with --relevance"),
        ("image,caption\na,1\n", "no column image_id, caption_id; the columns are image, caption"),
        ("image_id,caption_id,image_id\na,1,b\n", "two columns image_id"),
        ("image_id,caption_id,split\na,1,dev\n", "no row of the split 'test'.*dev"),
        ("image_id,caption_id,labels\na,1,x\n", "not a table of image_id, caption_id"),
        (f"image_id,caption_id,labels\na,1,{'1' * 23}\n", "not a table .*: .*too large"),
        ("image_id,caption_id\na,1\nb, \n", "1 cells of the column caption_id are empty"),
        ("", "not a table of image_id, caption_id"),
        ('image_id,caption_id\na,"1\nb,2\n', r"not a table .* unexpected end .* Close each quote"),
        (b"image_id,caption_id\na,1\ncaf\xe9,2\n", r"/t\.csv:3: byte 0xe9 .* iconv -f CP1252"),
    ],
)
def test_faulty_tables_are_one_line(files, text, message):
    path = files.folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=message) as fault:
        score("scenes", ExternalFiles(scores=(files.made("s.npy", files.table),)), path)
    assert "\n" not in str(fault.value)


def test_scores_are_not_compared_by_a_similarity(files):
    for similarity in ("cosine", "max_match"):
        with pytest.raises(ConfigError, match=f"--similarity {similarity}: .*Leave the option out"):
            score_of(files, scores=files.made("s.npy", files.table), similarity=similarity)


def _table(files, **changed):
    rows = pq.read_table(files.captions).to_pydict()
    path = files.folder / "changed.parquet"
    pq.write_table(pa.table(rows | {name: make(rows) for name, make in changed.items()}), path)
    return path


def test_numbers_are_ids_too(files):
    table = _table(
        files, image_id=lambda rows: [int.from_bytes(name.encode()) for name in rows["image_id"]]
    )
    made = ExternalFiles(scores=(files.made("s.npy", files.table),))
    assert score("scenes", made, table) == score_of(files, scores=made.scores[0])
    assert read_labels(table, [str(int.from_bytes(b"i0"))]).image_labels == [(1,)]


@pytest.mark.parametrize(
    ("column", "make", "message"),
    [
        ("labels", lambda rows: [["x"]] * len(rows["file"]), "Failed to parse string|cast"),
        ("image_id", lambda rows: [None, *rows["image_id"][1:]], "1 cells of .* image_id"),
    ],
)
def test_columns_of_another_kind_are_one_line(files, column, make, message):
    table = _table(files, **{column: make})
    for read in (lambda: read_split(table, "test"), lambda: read_labels(table, ["i0"])):
        with pytest.raises(DataError, match=message) as fault:
            read()
        assert "\n" not in str(fault.value)
