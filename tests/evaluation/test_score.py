"""Other models' embeddings and similarities: every file kind, any order, and every fault told."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from made_scores import ranked_split
from numpy.lib.format import write_array_header_2_0
from safetensors.numpy import save_file

from manymatch.cli.commands import app
from manymatch.config.layout import ResultFiles
from manymatch.datasets.base import CAPTIONS, RELEVANCE
from manymatch.evaluation.external.external_scores import ExternalFiles
from manymatch.evaluation.external.score import score as scored
from manymatch.evaluation.external.split_table import read_ids, read_split
from manymatch.evaluation.protocols.class_matches import classes
from manymatch.evaluation.protocols.labels import Labels, read_labels
from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.results.machine import MachineRecord
from manymatch.results.metrics import Metrics
from manymatch.results.provenance import Provenance
from manymatch.similarities import smooth_chamfer
from manymatch.util.errors import ConfigError, DataError, ManyMatchError
from manymatch.util.files import sha256

ROOT = Path(__file__).parents[2]
IMAGES = ["i0", "i1", "i2", "i3", "i4"]
CLASSES = [1, 2, 1, 9, 9]
INDEX = [0, 0, 1, 1, 1, 2, 3, 3, 4]
TEXTS = [f"t{number}" for number in range(len(INDEX))]


@dataclass(frozen=True)
class Files:
    folder: Path
    table: np.ndarray
    images: np.ndarray
    texts: np.ndarray

    @property
    def captions(self):
        return self.folder / "captions.parquet"

    def made(self, name, array):
        """The file with the array, of the kind that its name says."""
        path = self.folder / name
        if path.suffix == ".npy":
            np.save(path, array)
        elif path.suffix == ".npz":
            np.savez(path, found=array)
        elif path.suffix == ".safetensors":
            save_file({"found": np.ascontiguousarray(array)}, path)
        else:
            with h5py.File(path, "w") as file:
                file["group/found"] = array
        return str(path)


@pytest.fixture
def files(tmp_path):
    rows = [("tr", "tr0", "train", "x", "tr.jpg", [1]), ("tr2", "tr1", "train", "x", "b.jpg", [2])]
    rows += [
        (IMAGES[image], TEXTS[text], "test", "x", "a.jpg", [CLASSES[image]])
        for text, image in enumerate(INDEX)
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, schema=CAPTIONS), tmp_path / "captions.parquet")
    rng = np.random.default_rng(0)
    table = rng.permutation(45).reshape(5, 9).astype(np.float32)
    return Files(
        tmp_path, table, rng.normal(size=(5, 4)).astype("f4"), rng.normal(size=(9, 4)).astype("f4")
    )


def score(*given, **options):
    """The metrics alone."""
    return scored(*given, **options).values


def _expected(table):
    of = ranked_split(torch.from_numpy(table), torch.tensor(INDEX))
    return rounded(recall_of(of.ranking))


def _score(files, dataset="scenes", **made):
    if "scores" in made:
        made["scores"] = (made["scores"],)
    return score(dataset, ExternalFiles(**made), files.captions)


KINDS = pytest.mark.parametrize("kind", ["npy", "npz", "safetensors", "h5", "hdf5"])


@KINDS
def test_a_matrix_of_any_numbers_in_every_kind_of_file(files, kind):
    for dtype in ("f2", "f4", "f8", "i4"):
        path = files.made(f"scores.{kind}", files.table.astype(dtype))
        assert _score(files, scores=path) == _expected(files.table)


@KINDS
def test_a_constant_float64_matrix_ranks_every_own_pair_last(files, kind):
    values = _score(files, scores=files.made(f"scores.{kind}", np.full((5, 9), 0.1)))
    assert (values["i2t"]["r1"], values["t2i"]["r1"]) == (0.0, 0.0)
    assert values["t2i"]["meanr"] == 5.0
    assert values["i2t"]["meanr"] == np.mean([1 + 9 - INDEX.count(image) for image in range(5)])


@KINDS
def test_differences_beyond_float32_are_no_ties(files, kind):
    for dtype, ones in (("f8", 1.0), ("i8", 2**40)):
        table = (ones * (1 + 1e-12 * files.table.astype("f8"))).astype(dtype)
        assert _score(files, scores=files.made(f"scores.{kind}", table)) == _expected(files.table)


def test_matrices_of_different_types_are_averaged_exactly(files):
    small = files.made("small.npy", files.table.astype("f2"))
    fine = files.made("fine.npy", 1e-12 * files.table[::-1].astype("f8"))
    values = score("scenes", ExternalFiles(scores=(small, fine)), files.captions)
    assert values == _expected(files.table.astype("f8") + 1e-12 * files.table[::-1].astype("f8"))


def test_one_of_several_arrays(files):
    path = files.folder / "both.npz"
    np.savez(path, right=files.table, wrong=np.zeros((5, 9), "f4"))
    assert _score(files, scores=f"{path}:right") == _expected(files.table)
    with pytest.raises(DataError, match=r"right, wrong.*both\.npz:KEY"):
        _score(files, scores=str(path))
    with pytest.raises(DataError, match=r"no array 'left'.*right, wrong"):
        _score(files, scores=f"{path}:left")


@KINDS
def test_rows_in_another_order_with_their_ids(files, kind):
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(5), rng.permutation(9)
    (files.folder / "i.txt").write_text("\n".join(IMAGES[row] for row in rows))
    np.save(files.folder / "t.npy", np.array([TEXTS[column] for column in columns]))
    values = _score(
        files,
        scores=files.made(f"mixed.{kind}", files.table[rows][:, columns]),
        image_ids=files.folder / "i.txt",
        caption_ids=files.folder / "t.npy",
    )
    assert values == _expected(files.table)


def test_embeddings_are_compared_as_asked(files):
    made = {
        "images": files.made("i.npy", files.images),
        "texts": files.made("t.safetensors", files.texts),
    }
    dot = files.images @ files.texts.T
    lengths = np.linalg.norm(files.images, axis=1)[:, None] * np.linalg.norm(files.texts, axis=1)
    assert _score(files, **made, similarity="dot") == _expected(dot)
    assert _score(files, **made) == _expected(dot / lengths)
    assert _expected(dot) != _expected(dot / lengths)


@pytest.mark.parametrize("scale", ["1e-43", "1e-30", "1e-13", "1e15", "1e30", "1e200", "1e-300"])
def test_a_number_for_all_vectors_changes_no_rank(files, scale):
    dtype = "f8" if float(scale) in (1e200, 1e-300) else "f4"
    exact = (1024 * files.images).round()  # few digits, which small numbers of float32 have too
    dot = exact @ files.texts.T
    lengths = np.linalg.norm(exact, axis=1)[:, None] * np.linalg.norm(files.texts, axis=1)
    images = files.made("images.npy", (exact.astype("f8") * float(scale)).astype(dtype))
    texts = files.made("texts.npy", files.texts)
    assert _score(files, images=images, texts=texts) == _expected(dot / lengths)
    assert _score(files, images=images, texts=texts, similarity="dot") == _expected(dot)


def test_sets_of_vectors(files):
    rng = np.random.default_rng(2)
    images, texts = rng.normal(size=(5, 3, 4)), rng.normal(size=(9, 2, 4))
    made = {"images": files.made("i.npy", images), "texts": files.made("t.npy", texts)}
    unit = [torch.nn.functional.normalize(torch.tensor(item), dim=2) for item in (images, texts)]
    expected = _expected(smooth_chamfer(*unit).numpy())
    assert _score(files, **made, similarity="smooth_chamfer") == expected
    with pytest.raises(ConfigError, match=r"'cosine' compares single vectors.*sets of 3"):
        _score(files, **made)


def test_a_csv_table_in_any_order(files):
    order = [8, 1, 5, 3, 0, 6, 2, 7, 4]
    lines = [f"{TEXTS[text]},{IMAGES[INDEX[text]]}" for text in order]
    path = files.folder / "pairs.csv"
    path.write_text("\n".join(["caption_id,image_id", *lines]))
    images = list(dict.fromkeys(INDEX[text] for text in order))
    matrix = files.made("s.npy", files.table[images][:, order])
    assert score("scenes", ExternalFiles(scores=(matrix,)), path) == _expected(files.table)


@pytest.mark.parametrize(
    "head",
    [
        "image_id, caption_id",
        "image_id;caption_id",
        "Image_ID\tCaption_ID",
        '\n"image_id"|x|caption_id',
    ],
)
def test_a_csv_table_as_other_programs_write_it(files, head):
    mark = next((mark for mark in ";\t|" if mark in head), ",")
    middle = [""] if "x" in head else []
    rows = [mark.join([IMAGES[image], *middle, f" {TEXTS[t]}"]) for t, image in enumerate(INDEX)]
    matrix = ExternalFiles(scores=(files.made("s.npy", files.table),))
    for ending in ("csv", "CSV", "tsv", "txt"):
        path = files.folder / f"t.{ending}"
        path.write_text("\n".join([head, *rows]))
        assert score("scenes", matrix, path) == _expected(files.table)


def test_of_scan_s_dev_split_the_first_5000_captions_count(files):
    path = files.folder / "dev.csv"
    for split in ("dev", "validation"):
        rows = [f"i{row // 5},c{row},{split}" for row in range(5070)]
        path.write_text("\n".join(["image_id,caption_id,split", *rows]))
        result = read_split(path, split)
        sizes = len(result.image_ids), len(result.caption_ids)
        assert sizes == ((1000, 5000) if split == "dev" else (1014, 5070))


def test_a_csv_table_with_splits_and_labels(files):
    lines = ["image_id,caption_id,split,labels", "a,a0,train,1", "b,b0,train,2"]
    lines += [f"{IMAGES[image]},{TEXTS[t]},test,{CLASSES[image]}" for t, image in enumerate(INDEX)]
    (files.folder / "t.csv").write_text("\n".join(lines))
    matrix = ExternalFiles(scores=(files.made("s.npy", files.table),))
    assert score("cub", matrix, files.folder / "t.csv") == _score(
        files, "cub", scores=matrix.scores[0]
    )


def test_the_protocols_of_the_data_set_or_those_asked_for(files):
    made = ExternalFiles(scores=(files.made("s.npy", files.table),))
    labels = Labels([(label,) for label in CLASSES], frozenset({1, 2}))
    of = ranked_split(torch.from_numpy(files.table), torch.tensor(INDEX), labels)
    expected = rounded(classes(of))
    assert score("cub", made, files.captions)["classes"] == expected
    assert list(expected) == ["all_classes", "zero_shot"]
    asked = score("anything", made, files.captions, protocols=["classes", "pmrp"])
    assert asked["classes"] == expected
    assert set(asked["pmrp"]) == {"all"}
    with pytest.raises(DataError, match="CxC"):
        score("anything", made, files.captions, protocols=["cxc"])
    assert set(score("own", made, files.captions, protocols=["pairs"])) == {"i2t", "t2i", "rsum"}


def test_several_matrices_are_ranked_by_their_mean(files):
    other = np.random.default_rng(5).permutation(45).reshape(5, 9).astype("f4")
    paths = files.made("a.npy", files.table), files.made("b.h5", other)
    out = files.folder / "out"
    places = ResultFiles.inside(out)
    values = score("scenes", ExternalFiles(scores=paths), files.captions, written=places)
    assert values == _expected((files.table + other) / 2) != _expected(files.table)
    hashes = [sha256(Path(path)) for path in paths]
    assert json.loads(places.provenance.read_text())["scores_sha256"] == "+".join(hashes)
    small = files.made("c.npy", other[:4])
    with pytest.raises(DataError, match=r"c\.npy: 4 images x 9 captions, .*5 x 9"):
        score("scenes", ExternalFiles(scores=(paths[0], small)), files.captions)


def test_judgments_beyond_the_pairs(files):
    path = files.folder / "relevance.parquet"
    schema = RELEVANCE.with_metadata({"complete": "true"})
    pq.write_table(pa.table([["i0"], ["t8"]], schema=schema), path)
    made = ExternalFiles(scores=(files.made("s.npy", files.table),))
    values = score("scenes", made, files.captions, path)
    assert set(values["multi"]) == {"i2t", "t2i"}
    as_csv = files.folder / "relevance.csv"
    as_csv.write_text("caption_id; image_id\nt8; i0\n")
    assert score("scenes", made, files.captions, as_csv)["rsum"] == values["rsum"]
    as_csv.write_text("caption;image\nt8;i0\n")
    with pytest.raises(DataError, match=r"relevance\.csv: .*no column image_id, caption_id"):
        score("scenes", made, files.captions, as_csv)
    as_csv.write_text("caption_id,image_id\ni0,t8\n")
    with pytest.raises(DataError, match=r"none of the 1 pairs is .*, such as t8 and i0"):
        score("scenes", made, files.captions, as_csv)


def test_what_is_written_is_what_the_report_reads(files):
    out = files.folder / "out"
    places = ResultFiles.inside(out)
    made = ExternalFiles(scores=(files.made("s.npy", files.table),))
    values = score("scenes", made, files.captions, name="theirs", written=places)
    assert json.loads(places.full.read_text()) == values
    Metrics.model_validate(values)
    record = Provenance.model_validate_json(places.provenance.read_text())
    assert (record.setting, record.preset, record.images) == ("external", "theirs", 5)
    message = json.loads(places.provenance.read_text())
    assert message["data_sha256"] == sha256(files.captions)
    assert message["scores_sha256"] == sha256(Path(made.scores[0]))
    assert MachineRecord.read(places.machine).root["score"].seconds is not None
    best = TEXTS[int(files.table[0].argmax())]
    first = (places.run / "i2t.trec").read_text().splitlines()[0].split()
    assert first == ["i0", "Q0", best, "1", f"{files.table[0].max():.9g}", "theirs"]


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
    scores = {
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
            _score(files, **made)
        assert "\n" not in str(fault.value), name


def test_a_packed_array_of_another_shape_is_not_unpacked(files):
    """A header that claims 4 TB of zeros, which pack well."""
    header = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**6)}
    write_array_header_2_0(header, shape)
    with zipfile.ZipFile(files.folder / "bomb.npz", "w") as archive:
        archive.writestr("a.npy", header.getvalue())
    with pytest.raises(DataError, match=r"bomb\.npz:a: 1,000,000 images x 1,000,000 captions"):
        _score(files, scores=f"{files.folder}/bomb.npz")


@pytest.mark.parametrize(
    "text, message",
    [
        ("image_id,caption_id\na,1\nb,1\n", r"caption '1' twice \(row 2.*with --relevance"),
        ("image,caption\na,1\n", "no column image_id, caption_id; the columns are image, caption"),
        ("image_id,caption_id,image_id\na,1,b\n", "two columns image_id"),
        ("image_id,caption_id,split\na,1,dev\n", "no row of the split 'test'.*dev"),
        ("image_id,caption_id,labels\na,1,x\n", "not a table of image_id, caption_id"),
        (f"image_id,caption_id,labels\na,1,{'1' * 23}\n", "not a table .*: .*too large"),
        ("", "not a table of image_id, caption_id"),
        (b"image_id,caption_id\na,1\ncaf\xe9,2\n", r"/t\.csv:3: byte 0xe9 .* iconv -f CP1252"),
        ("image_id,caption_id\na,1\n".encode("utf-16"), r"/t\.csv:1: .* iconv -f UTF-16"),
    ],
)
def test_faulty_tables_are_one_line(files, text, message):
    path = files.folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=message) as fault:
        score("scenes", ExternalFiles(scores=(files.made("s.npy", files.table),)), path)
    assert "\n" not in str(fault.value)


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
    assert score("scenes", made, table) == _score(files, scores=made.scores[0])
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


def test_the_command_prints_and_writes(files, monkeypatch, capsys):
    monkeypatch.chdir(files.folder)
    matrix = files.made("s.npy", files.table)
    words = ["score", "cub", "--scores", matrix, "--captions", str(files.captions)]
    app([*words, "--json"], standalone_mode=False)
    printed = json.loads(capsys.readouterr().out)
    assert printed["classes"].keys() == {"all_classes", "zero_shot"}
    assert not Path("reports").exists()
    app([*words, "--as", "theirs"], standalone_mode=False)
    assert json.loads(Path("reports/results/cub/theirs.json").read_text()) == printed
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "reports/results/cub/theirs.json"
    assert any(line.startswith("Text → image") for line in lines)
    assert Path("reports/runs/cub/theirs/t2i.trec").is_file()
    with pytest.raises(ConfigError, match=r"no dataset 'cuub'; did you mean 'cub'\?.*--protocol"):
        app([words[0], "cuub", *words[2:]], standalone_mode=False)
    with pytest.raises(ConfigError, match="is not a name"):
        outside = [words[0], "../../x", *words[2:], "--protocol", "pairs", "--as", "x"]
        app(outside, standalone_mode=False)
    mine = [words[0], "mine", *words[2:], "--protocol", "pairs", "--scores", matrix]
    app(mine, standalone_mode=False)
    with pytest.raises(ConfigError, match="no similarity 'cosin'; did you mean 'cosine'"):
        app([*words, "--similarity", "cosin"], standalone_mode=False)
    with pytest.raises(ConfigError, match="is not a name"):
        app([*words, "--as", "a/b"], standalone_mode=False)


def test_a_data_set_of_one_s_own_needs_no_protocol(files, monkeypatch, capsys):
    monkeypatch.chdir(files.folder)
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["sources"]["mine"] = {"kind": "own", "images": "photos"}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    Path("data/captions").mkdir(parents=True)
    shutil.copy(files.captions, "data/captions/mine.parquet")
    pq.write_table(RELEVANCE.empty_table(), "data/captions/mine.relevance.parquet")
    matrix = files.made("s.npy", files.table)
    app(["score", "mine", "--scores", matrix], standalone_mode=False)
    assert "Text → image" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="no dataset 'mien'; did you mean 'mine'"):
        app(["score", "mien", "--scores", matrix], standalone_mode=False)
    Path("models/mine/cora").mkdir(parents=True)
    with pytest.raises(ConfigError, match="--as: 'cora' is a trained model of mine"):
        app(["score", "mine", "--scores", matrix, "--as", "cora"], standalone_mode=False)


def test_files_of_ids_hold_one_id_a_line_or_an_array_of_text(tmp_path):
    text, array = tmp_path / "ids.txt", tmp_path / "ids.npy"
    text.write_bytes(b"\xef\xbb\xbfmy dog.jpg\r\n\ncat.jpg \n")
    np.save(array, np.array([b"my dog.jpg", b"cat.jpg"]))
    assert read_ids(text) == read_ids(array) == ["my dog.jpg", "cat.jpg"]
