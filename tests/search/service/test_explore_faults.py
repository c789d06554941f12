"""Faulty requests, judgments and projects of the explorer: one line, and nothing is written."""

import json
import shutil
from pathlib import Path

import command_line
import numpy as np
import pyarrow.parquet as pq
import pytest
from made_explored import CAPTION_IDS, DATASET, DEPTH, IMAGE_IDS, TRUE
from starlette.testclient import TestClient

from manymatch.config.layout import Layout
from manymatch.results.ranked import Ranked, write_ranked
from manymatch.search.explore.explorer import Explorer
from manymatch.search.explore.lists import query
from manymatch.search.service.app import application
from manymatch.util.errors import DataError
from manymatch.util.json_file import read_object

from .conftest import ADDRESS


@pytest.mark.parametrize(
    ("change", "headers", "status"),
    [
        ({}, {"origin": "http://evil.example"}, 403),
        ({}, {"content-type": "text/plain"}, 415),
        ({"image": 99}, {}, 404),
        ({"annotator": "../x"}, {}, 422),
        ({"annotator": ""}, {}, 422),
        ({"relevant": "perhaps"}, {}, 422),
        ({"more": 1}, {}, 422),
    ],
)
def test_a_faulty_judgment_writes_nothing(explored, layout, change, headers, status):
    body = {"image": 0, "caption": 5, "relevant": True, "annotator": "ann"} | change
    answer = explored.post("/explore/judgments", json=body, headers=headers)
    assert answer.status_code == status and answer.json().keys() == {"error"}
    assert not layout.votes(DATASET).exists()


def test_a_page_of_this_address_may_judge(explored):
    body = {"image": 0, "caption": 5, "relevant": True, "annotator": "ann"}
    answer = explored.post("/explore/judgments", json=body, headers={"origin": ADDRESS})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("queries?sort=nothing", 422),
        ("queries?sort=rank_x", 422),
        ("queries?right=x", 422),
        ("queries?first=x:sets", 422),
        ("queries?size=1000", 422),
        ("query?row=99", 404),
        ("query?row=-1", 422),
        ("images/99", 404),
        ("hubs?sort=rank_sets", 422),
        ("unjudged?sort=x", 422),
        ("nothing", 422),
        ("map?method=table", 400),
        ("map?method=x", 422),
        ("explain?method=table&image=0&caption=0", 400),
    ],
)
def test_a_faulty_request_has_one_line(explored, path, status):
    answer = explored.get(f"/explore/{path}")
    assert answer.status_code == status and answer.json().keys() == {"error"}
    column = path.partition("sort=")[2]
    assert not column or answer.json()["error"] == f"no method or column '{column}'"


def test_faults_of_the_project_are_one_line(layout, tmp_path):
    with pytest.raises(DataError, match="no results to explore"):
        Explorer(layout, "other")
    shutil.copytree(layout.root, tmp_path / "copy")
    copy = Layout(tmp_path / "copy")
    table = pq.read_table(copy.captions(DATASET))
    pq.write_table(table.slice(0, 5), copy.captions(DATASET))
    with pytest.raises(DataError, match=r"tiny\.parquet.*Evaluate"):
        Explorer(copy, DATASET)
    shutil.copy(layout.captions(DATASET), copy.captions(DATASET))
    copy.votes(DATASET).parent.mkdir()
    copy.votes(DATASET).write_text("image_id,caption_id,relevant\na,b,perhaps\n")
    with pytest.raises(DataError, match=r"tiny\.csv.*a, b.*perhaps"):
        Explorer(copy, DATASET)
    copy.votes(DATASET).unlink()
    copy.scene_graphs(DATASET).write_bytes(b"x")
    client = TestClient(application([], explorer=Explorer(copy, DATASET)), ADDRESS)
    answer = client.get("/explore/queries")
    assert answer.status_code == 400 and "tiny.parquet" in answer.json()["error"]
    copy.votes(DATASET).parent.rmdir()
    copy.votes(DATASET).parent.write_text("")
    body = {"image": 0, "caption": 5, "relevant": True, "annotator": "ann"}
    answer = client.post("/explore/judgments", json=body)
    assert answer.status_code == 400 and "judgments" in answer.json()["error"]


def test_a_result_that_does_not_fit_is_left_out(layout, tmp_path, capsys):
    copy = Layout(Path(shutil.copytree(layout.root, tmp_path / "copy")))
    for name in ("damaged", "half", "small"):
        for file in ("full", "provenance", "run"):
            made, new = (getattr(copy.result(DATASET, one), file) for one in ("table", name))
            (shutil.copytree if made.is_dir() else shutil.copy)(made, new)
    (copy.run(DATASET, "damaged") / "t2i.parquet").write_bytes(b"PAR1")
    (copy.run(DATASET, "half") / "i2t.parquet").unlink()
    metrics = read_object(copy.result(DATASET, "small").full)
    copy.result(DATASET, "small").full.write_text(json.dumps(metrics | {"rsum": 599}))
    for path in copy.run(DATASET, "small").glob("?2?.parquet"):
        pq.write_table(pq.read_table(path).slice(2), path)
    assert Explorer(copy, DATASET).methods.keys() == {"sets", "table"}
    said = capsys.readouterr()
    assert all(f"left out: {name}" in said.out + said.err for name in ("damaged", "half", "small"))


def test_ranks_beyond_a_tie_with_the_last_kept_item_are_unknown(layout, tmp_path):
    copy = Layout(Path(shutil.copytree(layout.root, tmp_path / "copy")))
    image, caption = (ids.index(id) for ids, id in zip((IMAGE_IDS, CAPTION_IDS), TRUE, strict=True))
    path = copy.run(DATASET, "sets") / "t2i.parquet"
    ranked = Ranked(path)
    ranks, items, scores = ranked.ranks.copy(), ranked.items.copy(), ranked.scores.copy()
    items[caption, :] = [image, *(one for one in range(8) if one not in (image, 0))][:DEPTH]
    scores[caption], ranks[caption] = 1.0, 8
    write_ranked(path, CAPTION_IDS, ranks, items, scores, None)
    explorer = Explorer(copy, DATASET)
    assert explorer.table("t2i")["judged_sets"][caption].as_py() is None
    positives = query(explorer, "t2i", caption, 10)["positives"]
    assert all("sets" not in one["ranks"] for one in positives)
    write_ranked(path, CAPTION_IDS, ranks, items, scores - np.arange(DEPTH) // 3, None)
    assert Explorer(copy, DATASET).table("t2i")["judged_sets"][caption].as_py() == 3


def test_the_commands(layout, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(layout.root)
    target = tmp_path / "all.parquet"
    command_line.run(f"export --to {target}", monkeypatch)
    assert pq.read_metadata(target).num_rows == 32
    for command, words in (
        ("explore other --port 0 --no-browser", "no results to explore"),
        (f"export tiny --to {tmp_path / 'x.parquet'} --vectors table", "no trained model"),
        (f"export tiny --to {layout.params}", ".parquet"),
    ):
        assert words in command_line.fails(command, monkeypatch, capfd)
    assert sorted(tmp_path.iterdir()) == [target]
