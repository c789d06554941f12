"""An index that was moved or came from elsewhere, and the commands that use it."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

import pytest
from command_line import fails
from hashed_files import edit

from manymatch import Index
from manymatch.model.hub import fetched
from manymatch.search.index.manifest import Changes
from manymatch.util.errors import CheckpointError

from .conftest import Album


def test_the_model_of_a_moved_index_is_named(
    album: Album, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    album.index()
    moved = album.root / "far" / "away" / "album.index"
    shutil.copytree(album.target, moved)
    expected = [result.path for result in album.open().search("two dogs").results]
    with pytest.raises(CheckpointError, match=r"names the model '.*vsepp'.*--model"):
        Index.open(moved).search("two dogs")
    for model in (album.model_folder, str(album.model_folder)):
        answer = Index.open(moved, model).search("two dogs")
        assert [result.path for result in answer.results] == expected
    assert "--model" in fails(["search", str(moved), "two dogs"], monkeypatch, capfd)


def test_an_index_asks_no_hub_by_itself(album: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    album.index()
    downloaded = False

    def snapshot(name: str, *, local_files_only: bool, **_: Any) -> str:
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
            fetched(name)
    allowed = True
    assert Index.open(album.target, "somebody/model").search("two dogs").results
    edit(album.target / "manifest.json", model="somebody/model")
    downloaded = True
    assert Index.open(album.target).search("two dogs").results


def test_an_output_of_dvc_does_not_depend_on_times(album: Album, encoded: list[str]) -> None:
    def made(name: str) -> tuple[Changes, dict[str, bytes]]:
        album.target = album.root / name
        changes = album.index(times=False)
        return changes, album.content()

    _, first = made("1.index")
    for path in album.pictures.rglob("*.png"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert made("2.index")[1] == first
    index = album.open()
    assert not index.search("two dogs", where="date > 1960-01-01").results
    assert index.item(index.search("two dogs").results[0].id).mtime_ns == 0

    encoded.clear()
    assert made("2.index")[1] == first and not encoded
    album.draw("0/00.png", 77)
    assert made("2.index")[0].changed == 1
    assert album.index().embedded == 0  # and now with times
    assert album.open().search("two dogs", where="date > 2001-01-01").results


def test_a_page_without_a_temporary_folder_is_refused_before_the_search(
    album: Album, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    album.index()

    def full(**_: Any) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    words = ["search", str(album.target), "two dogs", "--open"]
    assert "--open: no folder for temporary files" in fails(words, monkeypatch, capfd)
