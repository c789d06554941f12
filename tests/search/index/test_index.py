"""An index in use: the results are those of scoring everything, and errors are one line."""

import os
import shutil
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_line import fails
from hashed_files import edit
from made_indexes import made_index

from manymatch import Index
from manymatch.evaluation.ensemble import reranked
from manymatch.model.places import download_model
from manymatch.search.index.sources import PictureFolder
from manymatch.util.errors import CheckpointError, ConfigError, DataError

METHODS = ["maxmatch", "cora", "msrm"]
SETTINGS = {"msrm": {"inference": "hypergraph"}}
"""A query and an item of MSRM have vectors in two spaces."""
TEXTS = ["a red bird above a table", "two dogs", "a bird \U0001f600", "xyzzy dogs"]


@pytest.mark.parametrize("method", METHODS)
def test_results_are_those_of_scoring_everything(method, make_model, pictures, tmp_path):
    folder, captions = make_model(method, settings=SETTINGS.get(method)), tmp_path / "captions.txt"
    lines = [*TEXTS, "a dog beside the red boat"]
    captions.write_text("\n\n".join(lines))
    images = made_index(pictures[0].parent, folder, tmp_path / "images")
    texts = made_index(captions, folder, tmp_path / "texts")
    model = images.model
    embedded = model.encode_images(sorted(pictures)), model.encode_texts(lines)
    similar = images.similar(images.search(TEXTS[0], 1).results[0].id)
    assert len(similar.results) == len(pictures) - 1

    scores = model.score(*embedded, "text").numpy()
    for answer, column in zip(images.search_all(lines), scores.T, strict=True):
        order = np.argsort(-column, kind="stable")
        assert [result.path for result in answer.results] == [pictures[row].name for row in order]
        np.testing.assert_allclose([r.score for r in answer.results], column[order], atol=1e-6)
        assert answer.exact
    if method == "msrm":  # a picture is nearest to itself
        for answer, picture in zip(
            images.search_all(sorted(pictures)), sorted(pictures), strict=True
        ):
            assert answer.results[0].path == picture.name
            assert answer.results[0].score == pytest.approx(1)
    if method == "cora":
        whole = partial(model.score, query="text")
        expected = reranked(whole, 0.6)(embedded[0], embedded[1]).numpy().max(0)
        by_entities = Index.open(images.folder, model, beta=0.6)
        hits = [answer.results[0].score for answer in by_entities.search_all(lines)]
        np.testing.assert_allclose(hits, expected, atol=1e-6)
        assert by_entities.similar(images.search("a dog").results[0].id).results
        with pytest.raises(ConfigError, match="holds captions"):
            Index.open(texts.folder, model, beta=0.6)
    scores = model.score(*embedded, "image").numpy()
    for answer, row in zip(texts.search_all(sorted(pictures), 2), scores, strict=True):
        order = np.argsort(-row, kind="stable")[:2]
        assert [result.text for result in answer.results] == [lines[column] for column in order]
        np.testing.assert_allclose([r.score for r in answer.results], row[order], atol=1e-6)


def test_items_and_pictures_are_read_by_id_alone(indexed):
    index = indexed.open()
    for result in index.search("two dogs").results:
        item = index.item(result.id)
        assert item.path == result.path and item.id == result.id
        assert index.picture(result.id) == (indexed.pictures / result.path).read_bytes()
    secret = indexed.root / "secret.jpg"
    secret.touch()
    for name in ("", "../secret.jpg", str(secret), "0/00.png", "f" * 16, "0", "\0", "\udc80"):
        for call in (index.item, index.picture, index.similar):
            with pytest.raises(DataError, match="no item"):
                call(name)
    for path in ("../secret.jpg", str(secret), "0/../../secret.jpg", "a\0.jpg"):
        with pytest.raises(DataError):  # of an edited table of items
            PictureFolder(indexed.pictures).picture({"path": path})


def test_a_picture_that_became_something_else_is_refused(album):
    album.index()
    index = album.open()
    (id,) = (r.id for r in index.search("a dog").results if r.path == "0/00.png")
    file, folder = album.pictures / "0/00.png", album.pictures / "0"
    shutil.copytree(folder, secret := album.root / "secret")
    for path, other in ((file, secret / "00.png"), (folder, secret)):
        (shutil.rmtree if path == folder else Path.unlink)(path)
        path.symlink_to(other)
        with pytest.raises(DataError, match="not a picture in"):
            index.picture(id)
        path.unlink()
        with pytest.raises(DataError, match="no such file"):
            index.picture(id)
    folder.mkdir()
    os.mkfifo(file)
    with pytest.raises(DataError, match="a pipe"):
        index.picture(id)
    file.unlink()
    file.touch()
    os.truncate(file, 2**27)  # a service would read all of it into memory
    with pytest.raises(DataError, match="more than"):
        index.picture(id)


def test_an_index_behind_a_link_knows_its_model_and_source(album):
    (album.root / "disk" / "deep").mkdir(parents=True)
    (album.root / "link").symlink_to("disk/deep")
    album.target = album.root / "link" / "album.index"
    album.index()
    index = Index.open(album.target)
    (result,) = index.search("two dogs", 1).results
    assert index.picture(result.id) == (album.pictures / result.path).read_bytes()


def test_the_model_of_a_moved_index_is_named(indexed, monkeypatch, capfd):
    moved = indexed.root / "far" / "away" / "album.index"
    shutil.copytree(indexed.target, moved)
    expected = [result.path for result in indexed.open().search("two dogs").results]
    with pytest.raises(CheckpointError, match=r"names the model '.*vsepp'.*--model"):
        Index.open(moved).search("two dogs")
    for model in (indexed.model_folder, str(indexed.model_folder)):
        answer = Index.open(moved, model).search("two dogs")
        assert [result.path for result in answer.results] == expected
    assert "--model" in fails(["search", str(moved), "two dogs"], monkeypatch, capfd)


def test_an_index_asks_no_hub_by_itself(album, monkeypatch):
    album.index()
    downloaded = False

    def snapshot(name, *, local_files_only, **_):
        if local_files_only and not downloaded:
            raise OSError("not here")
        assert allowed
        return str(album.model_folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    allowed = False
    for name in ("somebody/model", "somebody/model@main", "../../x", "a/b/c", "x", "x" * 300):
        edit(album.target / "manifest.json", model=name)
        with pytest.raises(CheckpointError, match="--model"):
            Index.open(album.target).search("two dogs")
    for name in ("models/scenes/cora", "./cora", "../a/b", "cora", "/a/b", "~/b"):
        with pytest.raises(CheckpointError, match="no such folder"):
            download_model(name)
    allowed = True
    assert Index.open(album.target, "somebody/model").search("two dogs").results
    edit(album.target / "manifest.json", model="somebody/model")
    downloaded = True
    assert Index.open(album.target).search("two dogs").results


def test_hostile_queries_have_a_clear_answer(indexed):
    index = indexed.open()
    search, missing = partial(index.search, "a dog"), indexed.root / "missing.jpg"
    for text in ("", "  ", "a" * 100_000, "a\0b", "\ud800"):
        with pytest.raises(DataError, match="the query") as raised:
            index.search(text)
        assert len(str(raised.value)) < 1100
    for text in ("xyzzy", "'; DROP TABLE items; --", "<script>alert(1)</script>"):
        answer = index.search(text)
        assert len(answer.results) == (12 if answer.understood else 0)
    (indexed.root / "text.jpg").write_text("no picture")
    for call, error, words in (
        (partial(index.search_all, "two dogs"), DataError, "in a list"),
        *((partial(search, k), ConfigError, "at least 1") for k in (0, None, "5", 1.5)),
        *((partial(search, least=x), ConfigError, "least") for x in (float("nan"), 10**400, "1")),
        (partial(search, where=5), DataError, "not a text"),
        *((partial(index.item, name), DataError, "no item") for name in (None, 5, ["0"])),
        *((partial(index.search, path), DataError, path.name) for path in
          (missing, indexed.root / "text.jpg")),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            call()
    assert all(name not in index for name in (None, 5, ["0"]))


def test_filters_and_a_least_score(album):
    table = album.root / "facts.csv"
    rows = [f"{path.parent.name}/{path.name},{path.stem}" for path in album.pictures.rglob("*.png")]
    table.write_text("\n".join(["path,number", *rows[1:], "other.png,7"]))
    album.index(table=table)
    index = album.open()
    everything = index.search("two dogs").results
    assert len(everything) == 12

    def hits(**options):
        return index.search("two dogs", 12, **options).results

    assert hits(where="path glob '1/*'") == [r for r in everything if r.path.startswith("1/")]
    numbers = {result.path: index.item(result.id).facts["number"] for result in everything}
    assert list(numbers.values()).count(None) == 1
    few = [r for r in everything if numbers[r.path] is not None and numbers[r.path] < 6]
    assert hits(where="number < 6") == few
    assert hits(least=everything[4].score) == everything[:5]
    with warnings.catch_warnings(action="error"):
        assert hits(where="number < 0") == [] == hits(least=2.0) == hits(least=1e39)
    (first, *_) = index.similar(everything[0].id, where="number < 6").results
    assert numbers[first.path] < 6 and first.id != everything[0].id

    album.draw("new.png", 500)
    album.index()  # keeps the facts
    facts = {r.path: album.open().item(r.id).facts for r in album.open().search("a dog").results}
    assert {path: row["number"] for path, row in facts.items()} == numbers | {"new.png": None}


def test_nothing_heavy_is_loaded_before_it_is_needed(indexed):
    """Neither by the package, by the service before it answers, nor by an index that is opened."""
    program = (
        "import sys, manymatch, manymatch.search.service.app\n"
        "assert not {'torch', 'numpy', 'lancedb'} & sys.modules.keys()\n"
        f"index = manymatch.Index.open({str(indexed.target)!r})\n"
        "(first, *_) = index.stored.items['id'].to_pylist()\n"
        "assert len(index) == 12 and index.picture(first) and index.item(first).row == 0\n"
        "assert not {'torch', 'spacy'} & sys.modules.keys()\n"
        "assert set(manymatch.__all__) <= set(dir(manymatch)) and not hasattr(manymatch, 'x')\n"
        "manymatch.similarities.cosine, manymatch.losses.triplet, manymatch.networks.pooling.GPO\n"
        "assert manymatch.methods.METHODS and 'spacy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_scores_have_the_precision_that_the_model_knows(indexed, monkeypatch):
    curve = [[-1.0, 1.0], [0.0, 1.0]]
    monkeypatch.setitem(indexed.model.facts, "precision", {"text": curve, "image": curve})
    monkeypatch.setitem(indexed.model.facts, "precision_of", {"images": 100, "right": "all"})
    index = indexed.open()
    for result in index.search("two dogs").results:
        assert result.precision == pytest.approx((1 + result.score) / 2)
    assert index.similar(result.id).results[0].precision is None
    right = index.search("two dogs").right
    assert (right.images, right.pairs) == (100, "all")
    assert index.similar(result.id).right is None
    monkeypatch.setitem(indexed.model.facts, "precision_of", {"images": 99, "right": "all"})
    answer = index.search("two dogs")
    assert answer.right is None and answer.results[0].precision is None


def test_an_index_that_is_replaced_while_it_is_opened_is_not_mixed(album):
    album.index()
    opened = album.open()
    album.draw("new.png", 77)
    album.index()
    with pytest.raises(DataError, match="was replaced while"):
        opened.search("a dog")
    assert len(album.open().search("a dog").results) == 13
