"""Shards answer as the whole index does, or one line says which shard is missing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import HTTPException
from made_indexes import made_index
from starlette.testclient import TestClient
from waiting import ready

from manymatch import Index
from manymatch.model.picture_bytes import thumbnail
from manymatch.search.index.sources import PictureFolder
from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex
from manymatch.search.service.sharded_index import ShardedIndex
from manymatch.util.errors import ConfigError

from .conftest import ADDRESS


@pytest.fixture(scope="module")
def shards(
    make_model: Callable[..., Path], photos: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[TestClient]]:
    """The services of two shards of the index `photos`, and of an index by another method."""
    folder = tmp_path_factory.mktemp("shards")
    paths = sorted(photos.iterdir())
    clients = []
    for name, method, part in (
        ("1", "maxmatch", paths[:2]),
        ("2", "maxmatch", paths[2:]),
        ("3", "cora", paths),
    ):
        (folder / name).mkdir()
        for path in part:
            shutil.copy(path, folder / name)
        index = made_index(folder / name, make_model(method), folder / f"{name}.index")
        served = ServedIndex.from_folder(index.folder, "photos")
        clients.append(TestClient(application([served], rate=1e6), ADDRESS))
    with clients[0], clients[1], clients[2]:
        for client in clients:
            ready(client)
        yield clients


@pytest.fixture
def merged(shards: list[TestClient]) -> Iterator[TestClient]:
    with TestClient(application([ShardedIndex("photos", shards[:2])], rate=1e6), ADDRESS) as client:
        ready(client)
        yield client


def hits(answer: Any) -> list[tuple[str, float]]:
    assert answer["exact"]
    return [
        (result["path"], pytest.approx(result["score"], abs=1e-6)) for result in answer["results"]
    ]


def test_shards_answer_as_the_whole_index(
    merged: TestClient, indexes: list[Path], photos: Path
) -> None:
    whole = Index.open(indexes[0])
    (state,) = merged.get("/health").json()["indexes"]
    assert (state["items"], state["side"], state["method"]) == (len(whole), "images", "maxmatch")
    text = merged.get("/search", params={"q": "two dogs", "k": 3}).json()
    assert hits(text) == hits(whole.search("two dogs", 3).model_dump())
    path = next(photos.iterdir())
    picture = merged.post(
        "/search", content=path.read_bytes(), headers={"content-type": "image/png"}
    )
    assert hits(picture.json()) == hits(whole.search(path).model_dump())
    paths = {result["path"]: result["id"] for result in text["results"]}
    by_path = {whole.item(result.id).path: result.id for result in whole.search("dog").results}
    for name, item in paths.items():
        near = merged.get(f"/items/{item}/similar").json()
        assert hits(near) == hits(whole.similar(by_path[name]).model_dump())
        assert merged.get(f"/items/{item}").json()["path"] == name
        assert merged.get(f"/items/{item}/picture").content == (photos / name).read_bytes()
    for nowhere in ("0", "0.", "7.abc", "0.nobody", "x.1", "0...", "²."):
        assert merged.get(f"/items/{nowhere}").status_code == 404
    why = merged.get("/explain", params={"item": item, "q": "two dogs"}).json()
    assert why["score"] == pytest.approx(dict(hits(text))[name].expected, abs=1e-6)


def test_an_item_with_only_a_thumbnail_has_no_exact_answer(
    merged: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PictureFolder.picture
    monkeypatch.setattr(PictureFolder, "picture", lambda *item: thumbnail(file(*item)))
    item = merged.get("/search?q=dog").json()["results"][0]["id"]
    assert merged.get(f"/items/{item}/similar").json()["exact"] is False


def test_a_missing_shard_is_an_error_and_not_a_shorter_answer(
    shards: list[TestClient], capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = ShardedIndex.from_addresses(["http://127.0.0.1:1", "http://127.0.0.1:2"])
    index = ShardedIndex("photos", [shards[0], *nobody._shards[:1]])
    waiting = TestClient(application([index]), ADDRESS)
    with waiting:
        answer = waiting.get("/search?q=dog")
    assert answer.status_code == 503 and "shard" in answer.json()["error"]
    while "index 'photos' waits: shard http://127.0.0.1:1" not in capsys.readouterr().err:
        time.sleep(0.02)
    index.status = "ready"
    answer = waiting.get("/search?q=dog")
    assert answer.status_code == 503 and "http://127.0.0.1:1" in answer.json()["error"]


def test_shards_of_another_model_are_refused(shards: list[TestClient]) -> None:
    index = ShardedIndex("photos", [shards[0], shards[2]], "photos")
    index.load().join(30)
    assert index.status == "failed" and "another model" in str(index.fault)


def test_an_address_of_another_service_is_named() -> None:
    for content in ("<html></html>", "[1]", "{}"):
        other = httpx.MockTransport(lambda _, text=content: httpx.Response(200, text=text))
        index = ShardedIndex("photos", [httpx.Client(base_url=ADDRESS, transport=other)])
        with pytest.raises(HTTPException, match=ADDRESS):
            index._state_of(0)


def test_addresses_of_no_service_are_refused() -> None:
    for addresses in (
        *("photos.index", "ftp://a/b", "http://a/../b", "http://", "http://[::1", "http://a..b/x"),
        *("http://127.0.0.1:abc/x", "http://127.0.0.1:99999", "http://127.0.0.1:65536/x"),
        *("http://127.0.0.1:-1", "http://127.0.0.1:0"),
        *("http://a/x http://b/y", "http://a/x http://a/x"),
    ):
        with pytest.raises(ConfigError):
            ShardedIndex.from_addresses(addresses.split())
