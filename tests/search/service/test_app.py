"""The service answers as the index does, and every faulty request with one line that names no path
of the server."""

import csv
import io
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hashed_files import reseal
from made_indexes import made_index
from picture_bomb import bomb
from PIL import Image
from starlette.testclient import TestClient
from waiting import ready

from manymatch import Index
from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex

from .conftest import ADDRESS, assert_refused

PNG = {"content-type": "image/png"}


@pytest.fixture(scope="module")
def index(indexes):
    return Index.open(indexes[0])


def results_of(answer, number=float):
    return [(result["id"], number(result["score"])) for result in answer["results"]]


def near(score):
    return pytest.approx(score, abs=1e-6)


def assert_same(answer, expected):
    assert results_of(answer) == results_of(expected.model_dump(), near) and answer["exact"]


def test_texts_and_pictures_find_what_the_index_finds(client, index, photos, items):
    answer = client.get("/search", params={"q": "two dogs", "k": 3}).json()
    assert_same(answer, index.search("two dogs", 3))
    question = {"q": "two dogs", "where": "path glob '3*'", "least": -1.0, "index": "photos"}
    expected = index.search("two dogs", where=question["where"], least=-1.0)
    for reply in (client.get("/search", params=question), client.post("/search", json=question)):
        assert_same(reply.json(), expected)
    assert len(expected.results) == 1

    path = photos / "1.png"
    found = client.post("/search?k=4", content=path.read_bytes(), headers=PNG).json()
    assert_same(found, index.search(path, 4))
    assert found["results"][0]["path"] == "1.png"
    similar = client.get(f"/items/{items['1.png']}/similar", params={"k": 3}).json()
    assert_same(similar, index.similar(items["1.png"], 3))


def test_results_are_saved_as_a_table(client, items):
    question = {"q": "=two dogs", "k": 3}
    results = client.get("/search", params=question).json()["results"]
    saved = client.get("/search", params=question | {"export": "csv"})
    assert saved.headers["content-disposition"] == 'attachment; filename="photos.csv"'
    rows = [*csv.DictReader(io.StringIO(saved.text))]
    assert [*rows[0]] == ["query", "rank", "id", "path", "score", "precision"]
    assert [(row["rank"], row["path"]) for row in rows] == [
        (str(rank), one["path"]) for rank, one in enumerate(results, start=1)
    ]
    assert {row["query"] for row in rows} == {"'=two dogs"}  # no formula
    nothing = client.get("/search?q=dogs&least=9&export=csv").text
    assert nothing == '"query","rank"\n'
    assert len(client.get("/items?k=3").json()) == 3
    assert {one["id"] for one in client.get("/items").json()} == {*items.values()}


def test_answers_do_not_depend_on_the_batch(client):
    questions = [
        {"q": f"{first} {second}", "k": k, "index": name}
        for first in ("red", "two")
        for second in ("dogs", "bird", "boat")
        for k in (2, 4)
        for name in ("photos", "graphs", "photos")
    ]
    alone = [client.get("/search", params=question).json() for question in questions]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda one: client.get("/search", params=one).json(), questions))
    assert list(map(results_of, together)) == [results_of(answer, near) for answer in alone]
    shown = client.get("/metrics").text
    (single,) = re.findall(r'batch_size_bucket{index="photos",le="1.0"} (\S+)', shown)
    (count,) = re.findall(r'batch_size_count{index="photos"} (\S+)', shown)
    assert float(single) < float(count)


def test_a_score_is_explained(client, index, photos, items):
    text = "a red bird above a table"
    pair = {"index": "graphs", "item": items["2.png"], "q": text}
    why = client.post("/explain", json=pair).json()
    assert why["graph"]["objects"] == ["bird", "table"] and len(why["entity_scores"]) == 2
    why = client.get("/explain", params=pair | {"index": "photos"}).json()
    score = index.search(text, where='path = "2.png"').results[0].score
    assert why["score"] == pytest.approx(score, abs=1e-6)
    assert len(why["image_attention"][0]) == len(why["boxes"]) == 49

    data = (photos / "1.png").read_bytes()
    captions = client.post("/search?index=captions", content=data, headers=PNG).json()["results"]
    assert {result["text"] for result in captions} >= {"a red bird", "two dogs"}
    asked = {"index": "captions", "item": captions[0]["id"]}
    why = client.post("/explain", params=asked, content=data, headers=PNG).json()
    assert why["score"] == pytest.approx(captions[0]["score"], abs=1e-6)
    assert why["words"] and why["image_attention"]
    assert_refused(client.get("/explain", params=asked | {"q": "a red bird"}), 400)


def test_items_leave_by_their_id_in_their_index(client, photos, items):
    for path, item in items.items():
        facts = client.get(f"/items/{item}").json()
        assert facts["path"] == path and "<script>" in facts["facts"]["captions"][0]
        picture = client.get(f"/items/{item}/picture")
        assert picture.content == (photos / path).read_bytes()
        assert picture.headers["content-type"] == "image/png"
        small = client.get(f"/items/{item}/thumbnail?index=graphs")
        assert Image.open(io.BytesIO(small.content)).format == "JPEG"
    for end in ("", "/picture", "/similar"):
        assert_refused(client.get(f"/items/{item}{end}?index=captions"), 404)
    paths = ("/", "/health", "/metrics", f"/items/{item}", "/search?q=dogs", "/page/page.js")
    for path in (*paths, f"/items/{item}/picture", f"/items/{item}/thumbnail"):
        head, whole = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
        assert int(head.headers["content-length"]) > 0
    assert client.head("/items/none").status_code == 404


ADDRESSES = {
    400: ["where=path%20like", "where=colour=1"],
    404: ["index=photo"],
    422: [
        *("q=", "q=%20%20", f"q={'x' * 40_000}", "q=a%00b", "k=0", "k=1000000000", "least=nan"),
        *("limit=3", f"where={'x' * 5_000}", "k=1&k=2"),
    ],
}
"""Queries in the address of a search, by the status of the refusal."""
PATHS = [
    *("/items/0123456789abcdef", "/explain?item=x&q=dog", "/items/x/similar", "/redoc"),
    *("/items/..%2F..%2Fmanifest.json/picture", "/items/%2Fetc%2Fpasswd/picture"),
    "/page/..%2Fapp.py",
]
BODIES = [
    (b"", "image/jpeg", 400),
    (b"no picture", "image/jpeg", 400),
    (bomb(8_000, 6_250), "image/png", 400),
    (bomb(60_000, 60_000), "image/png", 400),
    (bytes(40 * 1024**2), "image/png", 413),
    ((bytes(1024**2) for _ in range(200)), "image/png", 413),  # of unknown length
    (b"q=dog", "text/plain", 415),
    (b"q=dog", "application/x-www-form-urlencoded", 415),
    (b"{", "application/json", 422),
    (b"[1]", "application/json", 422),
    (b'{"q": ""}', "application/json", 422),
    (b'{"q": "dogs", "\\u0071": "bird"}', "application/json", 422),
    (b'{"q": "dogs", "k": 1, "k": 3}', "application/json", 422),
    (b'{"q": "dogs", "k": true}', "application/json", 422),
    (b"[" * 60_000, "application/json", 422),
    (b" " * 100_000, "application/json", 413),
]


def test_a_faulty_request_is_refused(client):
    for status, queries in ADDRESSES.items():
        for query in queries:
            question = query if query.startswith("q=") else f"q=dog&{query}"
            assert_refused(client.get(f"/search?{question}"), status)
    assert_refused(client.get("/search"), 422)
    assert_refused(client.get("/items?limit=3"), 422)
    for path in ("/search?k=1", "/search?index=graphs", "/explain?index=graphs"):
        body = {"q": "dog"} | ({"item": "x"} if "explain" in path else {})
        assert_refused(client.post(path, json=body), 422)
    assert_refused(client.delete("/search"), 405)
    for path in PATHS:
        assert_refused(client.get(path), 404)
    assert "/redoc: no such address. /docs" in client.get("/redoc").json()["error"]
    for body, kind, status in BODIES:
        assert_refused(client.post("/search", content=body, headers={"content-type": kind}), status)
    slow = TestClient(application([], rate=2), ADDRESS)
    assert_refused([slow.get("/health") for _ in range(6)][-1], 429)
    for host in ("attacker.example", "127.0.0.1.attacker.example:8000", ""):
        assert_refused(client.get("/health", headers={"host": host}), 421)
    for host in ("localhost:8000", "localhost.", "localhost.:8000", "127.0.0.1", "[::1]:8000"):
        assert client.get("/health", headers={"host": host}).status_code == 200


def test_no_answer_names_a_path_of_the_server(make_model, pictures, tmp_path):
    source, secret = tmp_path / "photos", pictures[1]
    source.mkdir()
    changes = {
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
            asked = (*(f"{item}{end}" for end in ("", "/picture", "/thumbnail", "/similar")),)
            for address in (*asked, f"/explain?item={found['id']}&q=dogs"):
                answer = client.get(address)
                assert str(tmp_path) not in answer.text and answer.status_code < 500
            if file.stem == "whole":
                assert_refused(client.get(item), 404)
                assert client.get(f"{item}/picture").status_code == 200
            else:
                assert_refused(answer, 400 if file.stem == "text" else 404)


def test_the_service_describes_itself(client):
    health = client.get("/health").json()
    assert health["status"] == "ready"
    facts = [(one["name"], one["method"], one["side"]) for one in health["indexes"]]
    assert facts[1:] == [("graphs", "cora", "images"), ("captions", "maxmatch", "texts")]
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/search", "/explain", "/items/{item}", "/health", "/metrics"} <= paths.keys()
    assert json.dumps(paths["/search"]["post"]).count("image/*") == 1
    for one in (paths["/search"]["get"], paths["/search"]["post"]):
        answers = json.dumps(one["responses"])
        assert "schemas/Answer" in answers and "schemas/Fault" in answers
    for path in ("/search?q=dogs", "/redoc"):
        client.get(path)
    text = client.get("/metrics").text
    assert re.search(r'manymatch_requests_total{route="/search",status="200"} \d', text)
    assert 'manymatch_index_ready{index="photos"} 1.0' in text
    assert 'route="other",status="404"' in text
