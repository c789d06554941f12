"""The service answers as the index does, and every faulty request with one line."""

from __future__ import annotations

import io
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picture_bomb import bomb
from PIL import Image
from starlette.testclient import TestClient
from waiting import ready

from manymatch import Index
from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex
from manymatch.util.errors import ConfigError
from manymatch.util.json_file import read_object

from .conftest import ADDRESS

PNG = {"content-type": "image/png"}


@pytest.fixture(scope="module")
def index(indexes: list[Path]) -> Index:
    return Index.open(indexes[0])


def results_of(answer: Any) -> list[tuple[str, float]]:
    return [(result["id"], result["score"]) for result in answer["results"]]


def assert_same(answer: Any, expected: Any) -> None:
    ids, scores = zip(*results_of(answer), strict=True)
    others, wanted = zip(*results_of(expected.model_dump()), strict=True)
    assert ids == others
    assert scores == pytest.approx(wanted, abs=1e-6)
    assert answer["exact"]


def test_all_indexes_become_ready(client: TestClient) -> None:
    health = client.get("/health").json()
    assert health["status"] == "ready"
    facts = [(one["name"], one["method"], one["side"]) for one in health["indexes"]]
    assert facts == [
        ("photos", "maxmatch", "images"),
        ("graphs", "cora", "images"),
        ("captions", "maxmatch", "texts"),
    ]


def test_a_text_finds_what_the_index_finds(client: TestClient, index: Index) -> None:
    answer = client.get("/search", params={"q": "two dogs", "k": 3}).json()
    assert_same(answer, index.search("two dogs", 3))
    question = {"q": "two dogs", "where": "path glob '3*'", "least": -1.0, "index": "photos"}
    expected = index.search("two dogs", where=question["where"], least=-1.0)
    for reply in (client.get("/search", params=question), client.post("/search", json=question)):
        assert_same(reply.json(), expected)
    assert len(expected.results) == 1


def test_a_picture_finds_what_the_index_finds(
    client: TestClient, index: Index, photos: Path, items: dict[str, str]
) -> None:
    path = photos / "1.png"
    reply = client.post("/search?k=4", content=path.read_bytes(), headers=PNG).json()
    assert_same(reply, index.search(path, 4))
    assert reply["results"][0]["path"] == "1.png"
    similar = client.get(f"/items/{items['1.png']}/similar", params={"k": 3}).json()
    assert_same(similar, index.similar(items["1.png"], 3))
    captions = client.post("/search?index=captions", content=path.read_bytes(), headers=PNG).json()
    assert {result["text"] for result in captions["results"]} >= {"a red bird", "two dogs"}


def test_answers_do_not_depend_on_the_batch(client: TestClient) -> None:
    texts = [f"{first} {second}" for first in ("red", "two") for second in ("dogs", "bird", "boat")]
    questions = [
        {"q": text, "k": k, "index": name}
        for text in texts * 4
        for k in (2, 4)
        for name in ("photos", "graphs")
    ]
    alone = [client.get("/search", params=question).json() for question in questions]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda one: client.get("/search", params=one).json(), questions))
    for first, second in zip(alone, together, strict=True):
        assert [one for one, _ in results_of(first)] == [one for one, _ in results_of(second)]
        assert dict(results_of(first)) == pytest.approx(dict(results_of(second)), abs=1e-6)
    sizes = re.findall(
        r'batch_size_bucket{index="photos",le="1.0"} (\S+)', client.get("/metrics").text
    )
    count = re.findall(r'batch_size_count{index="photos"} (\S+)', client.get("/metrics").text)
    assert float(sizes[0]) < float(count[0])


def test_a_score_is_explained(client: TestClient, index: Index, items: dict[str, str]) -> None:
    text = "a red bird above a table"
    pair = {"index": "graphs", "item": items["2.png"], "q": text}
    why = client.get("/explain", params=pair).json()
    assert client.post("/explain", json=pair).json() == why
    assert why["graph"]["objects"] == ["bird", "table"] and len(why["entity_scores"]) == 2
    why = client.get("/explain", params=pair | {"index": "photos"}).json()
    score = index.search(text, where='path = "2.png"').results[0].score
    assert why["score"] == pytest.approx(score, abs=1e-6)
    assert len(why["image_attention"][0]) == len(why["boxes"]) == 49


def test_a_caption_and_a_picture_are_explained(client: TestClient, photos: Path) -> None:
    data = (photos / "1.png").read_bytes()
    reply = client.post("/search?index=captions", content=data, headers=PNG).json()["results"][0]
    asked = {"index": "captions", "item": reply["id"]}
    why = client.post("/explain", params=asked, content=data, headers=PNG).json()
    assert why["score"] == pytest.approx(reply["score"], abs=1e-6)
    assert why["words"] and why["image_attention"]
    assert_refused(client.get("/explain", params=asked | {"q": "a red bird"}), 400)


def test_items_leave_by_their_id(client: TestClient, photos: Path, items: dict[str, str]) -> None:
    for path, item in items.items():
        facts = client.get(f"/items/{item}").json()
        assert facts["path"] == path and "<script>" in facts["facts"]["captions"][0]
        picture = client.get(f"/items/{item}/picture")
        assert picture.content == (photos / path).read_bytes()
        assert picture.headers["content-type"] == "image/png"
        small = client.get(f"/items/{item}/thumbnail?index=graphs")
        assert Image.open(io.BytesIO(small.content)).format == "JPEG"


def test_a_picture_that_is_no_longer_in_the_folder_stays_here(
    client: TestClient, photos: Path, items: dict[str, str], tmp_path: Path
) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes((photos / "1.png").read_bytes())
    kept = photos / "4.png"
    moved = kept.rename(tmp_path / "4.png")
    try:
        kept.symlink_to(secret)
        for end in ("picture", "thumbnail"):
            assert_refused(client.get(f"/items/{items['4.png']}/{end}"), 404)
    finally:
        kept.unlink()
        moved.rename(kept)


def assert_refused(answer: Any, status: int) -> None:
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}
    assert "\n" not in answer.json()["error"] and "Traceback" not in answer.text


ADDRESSES = {
    400: ["where=path%20like", "where=colour=1"],
    404: ["index=photo"],
    422: [
        *("q=", "q=%20%20", f"q={'x' * 40_000}", "q=a%00b", "k=0", "k=1000000000", "least=nan"),
        *("limit=3", f"where={'x' * 5_000}"),
    ],
}
"""Queries in the address of a search, by the status of the refusal."""
PATHS = [
    *("/items/0123456789abcdef", "/explain?item=x&q=dog", "/items/x/similar", "/docs"),
    *("/items/..%2F..%2Fmanifest.json/picture", "/items/%2Fetc%2Fpasswd/picture"),
    "/page/..%2Fapp.py",
]
BODIES: list[tuple[Any, str, int]] = [
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
    (b"[" * 60_000, "application/json", 422),
    (b" " * 100_000, "application/json", 413),
]


def test_a_faulty_address_is_refused(client: TestClient) -> None:
    for status, queries in ADDRESSES.items():
        for query in queries:
            question = query if query.startswith("q=") else f"q=dog&{query}"
            assert_refused(client.get(f"/search?{question}"), status)
    assert_refused(client.get("/search"), 422)
    for path in PATHS:
        assert_refused(client.get(path), 404)


@pytest.mark.parametrize(("body", "kind", "status"), BODIES)
def test_a_faulty_body_is_refused(client: TestClient, body: Any, kind: str, status: int) -> None:
    assert_refused(client.post("/search", content=body, headers={"content-type": kind}), status)


def test_ids_of_another_index_are_unknown(client: TestClient, items: dict[str, str]) -> None:
    item = items["1.png"]
    for address in (f"/items/{item}", f"/items/{item}/picture", f"/items/{item}/similar"):
        assert_refused(client.get(address, params={"index": "captions"}), 404)


def test_other_hosts_and_methods_are_refused(client: TestClient) -> None:
    for host in ("attacker.example", "127.0.0.1.attacker.example:8000", ""):
        assert_refused(client.get("/health", headers={"host": host}), 421)
    for host in ("localhost:8000", "localhost.", "localhost.:8000", "127.0.0.1", "[::1]:8000"):
        assert client.get("/health", headers={"host": host}).status_code == 200
    assert_refused(client.delete("/search"), 405)


def test_a_client_that_asks_too_often_waits(indexes: list[Path]) -> None:
    client = TestClient(application([ServedIndex.from_folder(indexes[0])], rate=2), ADDRESS)
    answers = [client.get("/health") for _ in range(6)]
    assert [one.status_code for one in answers][:4] == [200] * 4
    assert_refused(answers[-1], 429)


def test_an_index_that_loads_or_fails_says_so(
    indexes: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maxmatch = indexes[2] / read_object(indexes[2] / "manifest.json")["model"]
    # Without its start, nothing loads.
    waiting = TestClient(application([ServedIndex.from_folder(indexes[0])]), ADDRESS)
    assert waiting.get("/health").json()["status"] == "loading"
    assert_refused(waiting.get("/search?q=dog"), 503)

    def loaded(folder: Path, model: str | None = None) -> ServedIndex:
        served = ServedIndex.from_folder(folder, model=model)
        served.load().join()
        return served

    moved = Path(shutil.copytree(indexes[2], tmp_path / "moved" / "away.index"))
    without_model = loaded(moved)
    assert without_model.status == "failed" and "cannot be used" in str(without_model.fault)
    assert "--model" in capsys.readouterr().err
    assert loaded(moved, str(maxmatch)).status == "ready"
    np.save(moved / "vectors.npy", np.load(moved / "vectors.npy") / 2)
    assert loaded(moved, str(maxmatch)).status == "failed"
    (tmp_path / "bad.index").mkdir()
    bad = ServedIndex.from_folder(tmp_path / "bad.index")
    with TestClient(application([bad]), ADDRESS) as client:
        ready(client)
        health = client.get("/health").json()
        (state,) = health["indexes"]
        assert health["status"] == state["status"] == "failed"
        assert str(tmp_path) not in state["error"]
        assert_refused(client.get("/search?q=dog"), 503)


def test_indexes_have_names_of_their_own(indexes: list[Path], tmp_path: Path) -> None:
    for folders in ([tmp_path / "none.index"], [indexes[0], indexes[0]]):
        with pytest.raises(ConfigError, match="index"):
            application([ServedIndex.from_folder(folder) for folder in folders])
