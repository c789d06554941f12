"""The page and its files, files that changed since they were indexed, and requests for heads."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hashed_files import reseal
from made_indexes import made_index
from starlette.testclient import TestClient
from waiting import ready

from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex

from .conftest import ADDRESS
from .test_app import assert_refused


def test_head_is_get_without_a_body(client: TestClient, items: dict[str, str]) -> None:
    (item, *_) = items.values()
    paths = ("/", "/health", "/metrics", f"/items/{item}", "/search?q=dogs", "/page/page.js")
    for path in (*paths, f"/items/{item}/picture", f"/items/{item}/thumbnail"):
        head, whole = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
        assert int(head.headers["content-length"]) > 0
    assert client.head("/items/none").status_code == 404


def test_no_answer_names_a_path_of_the_server(
    make_model: Callable[..., Path], pictures: list[Path], tmp_path: Path
) -> None:
    source, secret = tmp_path / "photos", pictures[1]
    source.mkdir()
    changes: dict[str, Callable[[Path], object]] = {
        "nothing": lambda file: None,
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "link": lambda file: file.symlink_to(secret),
        "text": lambda file: file.write_text("no picture"),
        "whole": lambda file: shutil.copy(pictures[0], file),
    }
    for name in changes:
        shutil.copy(pictures[0], source / f"{name}.png")
    index = made_index(source, make_model("vsepp"), tmp_path / "photos.index")
    items = pq.read_table(index.folder / "items.parquet")
    numbers = pa.array(range(len(items)))
    others = pc.not_equal(items["path"].combine_chunks(), "whole.png")
    # Python has no object with two fields of one name.
    doubled = pa.StructArray.from_arrays([numbers, numbers], ["a", "a"], mask=others)
    pq.write_table(items.append_column("doubled", doubled), index.folder / "items.parquet")
    reseal(index.folder)
    with TestClient(application([ServedIndex.from_folder(index.folder)]), ADDRESS) as client:
        ready(client)
        for found in client.get("/search?q=dogs").json()["results"]:
            file, item = source / found["path"], f"/items/{found['id']}"
            file.unlink()
            changes[file.stem](file)
            for end in ("", "/picture", "/thumbnail", "/similar"):
                answer = client.get(f"{item}{end}")
                assert str(tmp_path) not in answer.text and answer.status_code < 500
            if file.stem == "whole":
                assert_refused(client.get(item), 404)
                assert client.get(f"{item}/picture").status_code == 200
                continue
            answer = client.get("/explain", params={"item": found["id"], "q": "dogs"})
            assert str(tmp_path) not in answer.text
            assert_refused(answer, 400 if file.stem == "text" else 404)
        for end in ("", "/picture", "/similar"):
            answer = client.get(f"/items/unknown{end}")
            assert_refused(answer, 404)
            assert "no item 'unknown'" in answer.text


def test_the_page_needs_nobody_else(client: TestClient) -> None:
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "style=" not in page.text
    files = set(re.findall(r'(?:src|href)="(/page/[^"]+)"', page.text))
    for path in list(files):
        files |= set(re.findall(r'from "(/page/[^"]+)"', client.get(path).text))
    for path in files:
        answer = client.get(path)
        assert answer.status_code == 200
        assert set(re.findall(r"https?://[^\"' )]+", answer.text)) <= {"http://www.w3.org/2000/svg"}
    assert len(files) > 3


def test_the_service_describes_itself(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/search", "/explain", "/items/{item}", "/health", "/metrics"} <= paths.keys()
    assert json.dumps(paths["/search"]["post"]).count("image/*") == 1
    for one in (paths["/search"]["get"], paths["/search"]["post"]):
        answers = json.dumps(one["responses"])
        assert "schemas/Answer" in answers and "schemas/Fault" in answers
    for path in ("/search?q=dogs", "/docs"):
        client.get(path)
    text = client.get("/metrics").text
    assert re.search(r'manymatch_requests_total{route="/search",status="200"} \d', text)
    assert 'manymatch_index_ready{index="photos"} 1.0' in text
    assert 'route="other",status="404"' in text
