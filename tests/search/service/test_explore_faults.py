"""Faulty requests, judgments and projects of the explorer: one line, and nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import command_line
import pyarrow.parquet as pq
import pytest
from made_explored import DATASET
from starlette.testclient import TestClient

from manymatch.config.layout import Layout
from manymatch.search.explore.explorer import Explorer
from manymatch.util.errors import DataError

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
def test_a_faulty_judgment_writes_nothing(
    explored: TestClient,
    layout: Layout,
    change: dict[str, Any],
    headers: dict[str, str],
    status: int,
) -> None:
    body = {"image": 0, "caption": 5, "relevant": True, "annotator": "ann"} | change
    answer = explored.post("/explore/judgments", json=body, headers=headers)
    assert answer.status_code == status and answer.json().keys() == {"error"}
    assert not layout.votes(DATASET).exists()


def test_a_page_of_this_address_may_judge(explored: TestClient) -> None:
    body = {"image": 0, "caption": 5, "relevant": True, "annotator": "ann"}
    answer = explored.post("/explore/judgments", json=body, headers={"origin": ADDRESS})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("queries?sort=nothing", 422),
        ("queries?sort=rank:x", 422),
        ("queries?right=x", 422),
        ("queries?first=x:sets", 422),
        ("queries?size=1000", 422),
        ("query?row=99", 404),
        ("query?row=-1", 422),
        ("images/99", 404),
        ("map?method=table", 404),
        ("explain?method=table&image=0&caption=0", 400),
    ],
)
def test_a_faulty_request_has_one_line(explored: TestClient, path: str, status: int) -> None:
    answer = explored.get(f"/explore/{path}")
    assert answer.status_code == status and answer.json().keys() == {"error"}


def test_faults_of_the_project_are_one_line(layout: Layout, tmp_path: Path) -> None:
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
    with pytest.raises(DataError, match=r"tiny\.csv.*line 2"):
        Explorer(copy, DATASET)
    (copy.run(DATASET, "sets") / "t2i.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"t2i\.parquet"):
        Explorer(copy, DATASET)


def test_the_commands(
    layout: Layout,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(layout.root)
    target = tmp_path / "all.parquet"
    command_line.run(f"export --to {target}", monkeypatch)
    assert pq.read_metadata(target).num_rows == 32
    for command, words in (
        ("explore other --port 0 --no-browser", "no results to explore"),
        (f"export tiny --to {tmp_path / 'x.parquet'} --vectors table", "no trained model"),
    ):
        assert words in command_line.fails(command, monkeypatch, capfd)
    assert sorted(tmp_path.iterdir()) == [target]
