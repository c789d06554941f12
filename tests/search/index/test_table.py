"""An index in a table of LanceDB answers as one in files does, and follows its source."""

import re
import signal
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
import warm_commands
from hypothesis import given, settings
from hypothesis import strategies as st
from made_galleries import KINDS, SETS, TOLERANCE, add_entities, compare, made_up

from manymatch import Index, load
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.search.index import table as tables
from manymatch.search.index import table_writer
from manymatch.search.index.database import engine_faults
from manymatch.search.index.manifest import Manifest, model_identity
from manymatch.search.index.sources import Entry
from manymatch.search.index.stored import Stored, table_of
from manymatch.search.index.table import Table
from manymatch.search.index.table_writer import TableWriter
from manymatch.search.scan.scanner import Scanner
from manymatch.util.errors import CheckpointError, DataError, ManyMatchError, StorageError

from .conftest import Album

S3 = {
    "AWS_ENDPOINT": "http://127.0.0.1:9",
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}
"""Of an object store that does not answer."""
FORMS = ["vsepp", "dive mil", "maxmatch topk", "msrm", "msrm hypergraph", "pcmepp", "cora beta"]
"""Scores of several forms of products; the tests of the scan have all scores."""
pytestmark = pytest.mark.skipif(
    find_spec("lancedb") is None, reason="no lancedb, whose import takes seconds"
)


@pytest.fixture
def table(album):
    """The album, whose index is a table."""
    album.index(engine="lance")
    return album


def same(one, other):
    """Compare the answers of two indexes of the same items."""
    pictures = [item["path"] for item in one.stored.items.to_pylist()]
    assert pictures == [item["path"] for item in other.stored.items.to_pylist()]
    for where in (None, "path glob '1/*' and size > 0"):
        for query in ("two dogs", "a red bird above a table"):
            ours, theirs = (index.search(query, 5, where=where) for index in (one, other))
            assert ours.results == theirs.results and ours.exact and theirs.exact
    id = ours.results[0].id
    assert one.similar(id, 3).results == other.similar(id, 3).results
    assert one.item(id) == other.item(id)
    assert one.picture(id) == other.picture(id)


def test_a_table_far_away_that_cannot_be_read_is_not_written_anew(album, monkeypatch):
    def unreachable(place):
        with engine_faults(place):
            raise OSError("timeout")

    monkeypatch.setattr("manymatch.search.index.table_writer.has_table", lambda place: True)
    monkeypatch.setattr(Table, "at", unreachable)
    with pytest.raises(DataError, match=r"\(timeout\).*again, or remove items.lance there if"):
        album.index(url="s3://bucket/photos")


def test_a_disk_that_is_full_at_first_leaves_a_place_for_the_table(album, monkeypatch):
    """The engine makes the folder before there is a table."""

    def full(*_):
        raise StorageError("no space left")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="no space"):
        patch.setattr(table_writer, "spooled", full)
        album.index(engine="lance")
    assert album.target.is_dir() and album.index(engine="lance").items == 12
    other = album.root / "other"
    (other / "folder").mkdir(parents=True)
    with pytest.raises(StorageError, match="not a table"):
        album.index(engine="lance", url=str(other))


def test_a_table_answers_as_files_do_before_and_after_an_update(table):
    files = Album(table.root / "files", table.model, table.model_folder)
    files.pictures = table.pictures
    files.index()
    same(table.open(), files.open())
    version = Table.at(str(table.target))[1].version
    assert table.index().embedded == 0 and Table.at(str(table.target))[1].version == version
    (table.pictures / "0" / "00.png").unlink()
    (table.pictures / "0" / "03.png").rename(table.pictures / "1" / "renamed's.png")
    table.draw("1/01.png", 100)
    table.draw("1/between.png", 101)
    table.draw("9/last.png", 102)
    former = table.open()
    ours, theirs = table.index(), files.index()
    assert ours == theirs and (ours.added, ours.changed, ours.renamed, ours.removed) == (2, 1, 1, 1)
    same(table.open(), files.open())
    facts = table.root / "facts.csv"
    facts.write_text("path,colour\n9/last.png,red\n")
    for one in (table, files):
        assert one.index(table=facts).embedded == 0
        (found,) = one.open().search("a bird", where="colour = 'red'").results
        assert found.path == "9/last.png"
    assert len(former) == 12 and len(former.search("two dogs", 20).results) == 12
    table.open().check()


def test_a_table_of_another_model_is_made_anew_if_it_may(table, make_model):
    table.model = load(make_model("maxmatch"), "cpu")
    with pytest.raises(CheckpointError, match="another model"):
        table.index()
    assert table.index(any_model=True).embedded == 12


KILLED = f"""
from pathlib import Path
import sys

sys.path.insert(0, {str(Path(__file__).parents[2] / "helpers")!r})
from killing import _kill_at

from manymatch import load
from manymatch.search.index.build import build
from manymatch.search.index.sources import source_of
from manymatch.util.parts import Parts

root, model, target = map(Path, sys.argv[1:4])
_kill_at(sys.argv[4], 1)
parts = Parts(root / "parts")
build(source_of(root / "pictures"), load(model, "cpu"), target, str(model), parts=parts)
"""


@pytest.mark.slow
def test_a_killed_update_leaves_a_whole_table(table, encoded):
    """The process dies before the commit, then between the commit and the manifest's."""
    (table.pictures / "0" / "00.png").unlink()
    (table.pictures / "broken.png").write_text("no picture")  # so that the manifest changes
    table.draw("new.png", 100)
    paths = map(str, (table.root, table.model_folder, table.target))
    command = [warm_commands.spawn(), "-c", KILLED, *paths]
    for function in ("spooled", "packed"):
        target = f"manymatch.search.index.table_writer.{function}"
        died = subprocess.run([*command, target], capture_output=True)
        assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        assert len(table.open()) == 12 and table.open().search("two dogs", 20).exact
    encoded.clear()
    table.index()
    assert not encoded and table.open().manifest.broken == 1
    files = Album(table.root / "files", table.model, table.model_folder)
    files.index(table.pictures)
    ours, theirs = (index.search("two dogs", 20).results for index in (table.open(), files.open()))
    assert [one.path for one in ours] == [one.path for one in theirs]


@pytest.mark.parametrize("score", FORMS)
@settings(deadline=None, derandomize=True, database=None, max_examples=3)
@given(data=st.data())
def test_what_says_exact_equals_brute_force(small_model, score, data):
    model, draw = small_model(score.removesuffix(" beta")), data.draw
    n, seed = draw(st.integers(1, 100)), draw(st.integers(0, 2**31))
    elements = draw(st.sampled_from([1, 2, 4])) if score in SETS else 1
    size = draw(st.sampled_from([1, 16, 40]))
    side = draw(st.sampled_from(["images", "texts"]))
    unequal = score in SETS and draw(st.booleans())
    gallery = made_up(draw(st.sampled_from(KINDS)), n, elements, size, seed, unequal=unequal)
    queries = made_up("random", 4, elements, size, seed + 1, unequal=unequal)
    beta = draw(st.floats(0, 1)) if score == "cora beta" and side == "images" else None
    if beta is not None:
        queries = add_entities(queries)
    wanted = {
        "k": draw(st.sampled_from([1, 5, 200])),
        "included": np.arange(n) % 3 > 0 if draw(st.booleans()) else None,
        "tolerance": TOLERANCE.get(score, 1e-6),
    }
    engine, few = draw(st.sampled_from(["lance", "lance-ivf"])), draw(st.booleans())
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        if few:  # so that the engine must choose
            patch.setattr(tables, "_CANDIDATES", 1)
            patch.setattr(tables, "_TIMES", 2)
            patch.setattr(tables, "_ALL", 1)
        folder = f"{root}/table"
        written(folder, model, gallery, side, engine)
        scanner = Table.at(folder)[1].scanner(model, side, beta)
        found = compare(scanner, gallery, queries, model, side=side, beta=beta, **wanted)
    assert all(hits.exact for hits in found) or (engine == "lance-ivf" and few)


def written(folder, model, gallery, side, engine="lance"):
    """Write a gallery to a table."""
    entries = [Entry(f"{row:06}.jpg", facts={"text": "a"}) for row in range(len(gallery))]
    items = table_of(entries)
    arrays = {name: part.numpy() for name, part in gallery.scored_parts().items()}
    stored = Stored(Path(folder), items, arrays)
    manifest = Manifest(
        model="model",
        identity=model_identity(model),
        source="",
        kind="folder",
        split=None,
        side=side,
        items=len(gallery),
        broken=0,
    )
    writer = TableWriter(folder, model, side, engine)
    writer.write(items, [(stored, row) for row in range(len(gallery))], manifest)


def test_candidates_are_found_by_an_index_of_vectors(small_model):
    model = small_model("dive smooth_chamfer")
    gallery = made_up("random", 6000, 2, 16, 0)
    queries = Embeddings(gallery.vectors[:20] + 0.1 * torch.randn(20, 2, 16))
    with TemporaryDirectory() as root:
        folder = f"{root}/table"
        written(folder, model, gallery, "images", "lance-ivf")
        table = Table.at(folder)[1]
        assert table._table.list_indices()
        found = table.scanner(model, "images", None).top(queries, 10)
    exact = Scanner(model, gallery).top(queries, 10)
    assert not any(hits.exact for hits in found)
    pairs = zip(found, exact, strict=True)
    assert np.mean([len({*ours.rows} & {*theirs.rows}) for ours, theirs in pairs]) > 7


def test_faults_are_one_line(table, make_model, monkeypatch):
    import lancedb

    place, foreign, facts = str(table.target), table.root / "foreign", table.root / "facts.csv"
    lancedb.connect(foreign).create_table("items", [{"id": "a"}])
    facts.write_text("path,codes\n0/00.png,1\n")
    for name, value in S3.items():
        monkeypatch.setenv(name, value)
    files = Album(table.root / "files", table.model, table.model_folder)
    files.index(table.pictures)
    other = load(make_model("maxmatch"), "cpu")

    def torn():
        for path in (path for path in table.target.rglob("*.lance") if path.is_file()):
            path.write_bytes(path.read_bytes()[:100])
        table.open()

    def replaced():
        for path in table.target.rglob("*.manifest"):
            path.write_bytes(path.read_bytes()[:20])
        table.index()

    def not_installed():
        monkeypatch.setitem(sys.modules, "lancedb", None)
        table.open()

    for call, words in (
        (partial(Index.open, f"file://{table.root}/none"), "no table 'items'"),
        (partial(Index.open, str(foreign)), "not a table of an index"),
        (partial(Index.open, place, other), "another model"),
        (partial(Index.open, "s3://bucket/photos"), "cannot be used"),
        (partial(files.index, table.pictures, engine="lance"), "not a table of LanceDB"),
        (partial(files.index, table.pictures, url=f"file://{files.target}"), "not a table of"),
        (partial(table.index, engine="lance-ivf"), "another kind"),
        (partial(table.index, table=facts), "'codes'"),
        (torn, "cannot be used"),
        (replaced, "items.lance there is damaged, remove it. Run"),
        (not_installed, "'.[lance]'"),
    ):
        with pytest.raises(ManyMatchError, match=re.escape(words)) as error:
            call()
        assert "\n" not in str(error.value) and ".cargo" not in str(error.value)
