"""Faulty requests, judgments and projects of the explorer: one line, and nothing is written."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from made_explored import DATASET
from starlette.testclient import TestClient

from manymatch.config.layout import Layout
from manymatch.search.explore.explorer import Explorer
from manymatch.search.service.app import application
from manymatch.util.errors import DataError
from manymatch.util.json_file import read_object

from .conftest import ADDRESS

BODY = {"image": 0, "caption": 5, "relevant": True, "annotator": "ann"}


def test_a_faulty_judgment_writes_nothing(explored, layout):
    for change, headers, status in (
        ({}, {"origin": "http://evil.example"}, 403),
        ({}, {"content-type": "text/plain"}, 415),
        ({"image": 99}, {}, 404),
        *(({"annotator": name}, {}, 422) for name in ("../x", "")),
        ({"relevant": "perhaps"}, {}, 422),
        ({"more": 1}, {}, 422),
    ):
        answer = explored.post("/explore/judgments", json=BODY | change, headers=headers)
        assert answer.status_code == status and answer.json().keys() == {"error"}
        assert not layout.votes(DATASET).exists()
    own = {"origin": ADDRESS}
    assert explored.post("/explore/judgments", json=BODY, headers=own).status_code == 200


FAULTS = {
    422: [
        *("queries?sort=nothing", "queries?sort=rank_x", "queries?right=x", "queries?size=1000"),
        *("queries?first=x:sets", "query?row=-1", "hubs?sort=rank_sets", "unjudged?sort=x"),
        *("nothing", "map?method=x"),
    ],
    404: ["query?row=99", "images/99"],
    400: ["map?method=table", "explain?method=table&image=0&caption=0"],
}
"""Requests, by the status of the refusal."""


def test_a_faulty_request_has_one_line(explored):
    for status, paths in FAULTS.items():
        for path in paths:
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
    answer = client.post("/explore/judgments", json=BODY)
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
