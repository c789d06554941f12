"""Other models' embeddings and similarities: every kind of file, in any order."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from external_files import CLASSES, IMAGES, INDEX, TEXTS, expected, score, score_of
from made_scores import ranked_split

from manymatch.cli.commands import app
from manymatch.config.layout import ResultFiles
from manymatch.datasets.base import RELEVANCE
from manymatch.evaluation.external.score import ExternalFiles
from manymatch.evaluation.external.split_table import read_ids, read_split
from manymatch.evaluation.protocols.class_matches import classes
from manymatch.evaluation.protocols.relevance import Labels
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.results.machine import MachineRecord
from manymatch.results.metrics import Metrics, Provenance
from manymatch.similarities import smooth_chamfer
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.files import sha256

ROOT = Path(__file__).parents[2]

KINDS = pytest.mark.parametrize("kind", ["npy", "npz", "safetensors", "h5", "hdf5", "pt"])


@KINDS
def test_a_matrix_of_any_numbers_in_every_kind_of_file(files, kind):
    """Differences beyond float32 are no ties, and equal values are."""
    exact = files.table.astype("f8")
    tables = [exact.astype(dtype) for dtype in ("f2", "f4", "f8", "i4")]
    tables += [1 + 1e-12 * exact, (2**40 * (1 + 1e-12 * exact)).astype("i8")]
    for table in tables:
        path = files.made(f"scores.{kind}", table)
        assert score_of(files, scores=path) == expected(files.table)
    constant = score_of(files, scores=files.made(f"scores.{kind}", np.full((5, 9), 0.1)))
    assert constant["t2i"]["meanr"] == 5.0
    assert constant["i2t"]["meanr"] == np.mean([10 - INDEX.count(image) for image in range(5)])


def test_one_of_several_arrays(files):
    path = files.folder / "both.npz"
    np.savez(path, right=files.table, wrong=np.zeros((5, 9), "f4"))
    assert score_of(files, scores=f"{path}:right") == expected(files.table)
    for where, words in {path: r"both\.npz:KEY", f"{path}:left": "no array 'left'"}.items():
        with pytest.raises(DataError, match=words):
            score_of(files, scores=str(where))


@KINDS
def test_rows_in_another_order_with_their_ids(files, kind):
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(5), rng.permutation(9)
    (files.folder / "i.txt").write_text("\n".join(IMAGES[row] for row in rows))
    np.save(files.folder / "t.npy", np.array([TEXTS[column] for column in columns]))
    values = score_of(
        files,
        scores=files.made(f"mixed.{kind}", files.table[rows][:, columns]),
        image_ids=files.folder / "i.txt",
        caption_ids=files.folder / "t.npy",
    )
    assert values == expected(files.table)


@pytest.mark.parametrize("way", ["i2t", "t2i"])
def test_scores_of_mteb_s_tasks_in_both_directions(files, way):
    sides = ((IMAGES, TEXTS), (TEXTS, IMAGES))[way == "t2i"]
    table = files.table if way == "i2t" else files.table.T
    order = np.random.default_rng(4).permutation(len(sides[1]))
    scores = {
        query: {sides[1][item]: float(row[item]) for item in order}
        for query, row in reversed([*zip(sides[0], table, strict=True)])
    }
    path = files.folder / "scenes-pairs_predictions.json"
    meta = {"model_name": "their/model", "revision": None}
    path.write_text(json.dumps({"mteb_model_meta": meta, "default": {"test": scores}}))
    assert score_of(files, scores=str(path)) == expected(files.table)


def test_tensors_of_torch_in_any_type_and_under_a_name(files):
    tensors = [torch.from_numpy(array) for array in (files.images, files.texts)]
    wanted = score_of(
        files, images=files.made("i.pt", files.images), texts=files.made("t.npy", files.texts)
    )
    path = files.folder / "both.pt"
    torch.save({"image": torch.nn.Parameter(tensors[0]), "text": tensors[1], "epoch": 3}, path)
    assert score_of(files, images=f"{path}:image", texts=f"{path}:text") == wanted
    half = [tensor.bfloat16() for tensor in tensors]
    torch.save(half[0], files.folder / "half.pt")
    rounded_texts = files.made("r.npy", half[1].float().numpy())
    rounded_images = files.made("r2.npy", half[0].float().numpy())
    assert score_of(files, images=f"{files.folder}/half.pt", texts=rounded_texts) == score_of(
        files, images=rounded_images, texts=rounded_texts
    )


def test_embeddings_are_compared_as_asked(files):
    made = {
        "images": files.made("i.npy", files.images),
        "texts": files.made("t.safetensors", files.texts),
    }
    dot = files.images @ files.texts.T
    lengths = np.linalg.norm(files.images, axis=1)[:, None] * np.linalg.norm(files.texts, axis=1)
    assert score_of(files, **made, similarity="dot") == expected(dot)
    assert score_of(files, **made) == expected(dot / lengths)
    assert expected(dot) != expected(dot / lengths)


@pytest.mark.parametrize("scale", ["1e-43", "1e30", "1e-300"])
def test_a_number_for_all_vectors_changes_no_rank(files, scale):
    dtype = "f8" if float(scale) in (1e200, 1e-300) else "f4"
    exact = (1024 * files.images).round()  # few digits, which small numbers of float32 have too
    dot = exact @ files.texts.T
    lengths = np.linalg.norm(exact, axis=1)[:, None] * np.linalg.norm(files.texts, axis=1)
    images = files.made("images.npy", (exact.astype("f8") * float(scale)).astype(dtype))
    texts = files.made("texts.npy", files.texts)
    assert score_of(files, images=images, texts=texts) == expected(dot / lengths)
    assert score_of(files, images=images, texts=texts, similarity="dot") == expected(dot)


def test_sets_of_vectors(files):
    rng = np.random.default_rng(2)
    images, texts = rng.normal(size=(5, 3, 4)), rng.normal(size=(9, 2, 4))
    made = {"images": files.made("i.npy", images), "texts": files.made("t.npy", texts)}
    unit = [torch.nn.functional.normalize(torch.tensor(item), dim=2) for item in (images, texts)]
    wanted = expected(smooth_chamfer(*unit).numpy())
    assert score_of(files, **made, similarity="smooth_chamfer") == wanted
    with pytest.raises(ConfigError, match=r"'cosine' compares single vectors.*sets of 3"):
        score_of(files, **made)


@pytest.mark.parametrize(
    "head",
    [
        "image_id, caption_id",
        "image_id;caption_id",
        "Image_ID\tCaption_ID",
        '\n"image_id"|x|caption_id',
    ],
)
def test_a_csv_table_as_other_programs_write_it_in_any_order(files, head):
    order = [8, 1, 5, 3, 0, 6, 2, 7, 4]
    images = list(dict.fromkeys(INDEX[text] for text in order))
    mark = next((mark for mark in ";\t|" if mark in head), ",")
    middle = [""] if "x" in head else []
    rows = [mark.join([IMAGES[INDEX[text]], *middle, f" {TEXTS[text]}"]) for text in order]
    matrix = ExternalFiles(scores=(files.made("s.npy", files.table[images][:, order]),))
    for ending in ("csv", "CSV", "tsv", "txt"):
        path = files.folder / f"t.{ending}"
        path.write_text("\n".join([head, *rows]))
        assert score("scenes", matrix, path) == expected(files.table)


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
    assert score("cub", matrix, files.folder / "t.csv") == score_of(
        files, "cub", scores=matrix.scores[0]
    )


def test_the_protocols_of_the_data_set_or_those_asked_for(files):
    made = ExternalFiles(scores=(files.made("s.npy", files.table),))
    labels = Labels([(label,) for label in CLASSES], frozenset({1, 2}))
    of = ranked_split(torch.from_numpy(files.table), torch.tensor(INDEX), labels)
    wanted = rounded(classes(of))
    assert score("cub", made, files.captions)["classes"] == wanted
    assert list(wanted) == ["all_classes", "zero_shot"]
    asked = score("anything", made, files.captions, protocols=["classes", "pmrp"])
    assert asked["classes"] == wanted
    assert set(asked["pmrp"]) == {"all"}
    with pytest.raises(DataError, match="CxC"):
        score("anything", made, files.captions, protocols=["cxc"])
    assert set(score("own", made, files.captions, protocols=["pairs"])) == {"i2t", "t2i", "rsum"}


def test_several_matrices_are_ranked_by_their_mean(files):
    """Exactly, whatever their types."""
    other = 1e-12 * np.random.default_rng(5).permutation(45).reshape(5, 9)
    tied = files.table // 9
    paths = files.made("a.npy", tied.astype("f2")), files.made("b.h5", other)
    out = files.folder / "out"
    places = ResultFiles.inside(out)
    values = score("scenes", ExternalFiles(scores=paths), files.captions, written=places)
    assert values == expected(tied + other) != expected(tied)
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
    with pytest.raises(ConfigError, match=r"no data set 'cuub'; did you mean 'cub'\?.*--protocol"):
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
    with pytest.raises(ConfigError, match="no data set 'mien'; did you mean 'mine'"):
        app(["score", "mien", "--scores", matrix], standalone_mode=False)
    Path("models/mine/cora").mkdir(parents=True)
    with pytest.raises(ConfigError, match="--as: 'cora' is a trained model of mine"):
        app(["score", "mine", "--scores", matrix, "--as", "cora"], standalone_mode=False)


def test_files_of_ids_hold_one_id_a_line_or_an_array_of_text(tmp_path):
    text, array = tmp_path / "ids.txt", tmp_path / "ids.npy"
    text.write_bytes(b"\xef\xbb\xbfmy dog.jpg\r\n\ncat.jpg \n")
    np.save(array, np.array([b"my dog.jpg", b"cat.jpg"]))
    assert read_ids(text) == read_ids(array) == ["my dog.jpg", "cat.jpg"]
