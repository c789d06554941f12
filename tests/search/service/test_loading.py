"""An index that loads, or that cannot be loaded, says so."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from fastapi import HTTPException
from starlette.testclient import TestClient

from manymatch import Index
from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex
from manymatch.util.errors import ConfigError
from manymatch.util.json_file import read_object

from .conftest import ADDRESS, assert_refused


def test_an_index_that_loads_or_fails_says_so(indexes, tmp_path, monkeypatch, capsys):
    maxmatch = indexes[2] / read_object(indexes[2] / "manifest.json")["model"]
    # Without its start, nothing loads.
    waiting = TestClient(application([ServedIndex.from_folder(indexes[0])]), ADDRESS)
    assert waiting.get("/health").json()["status"] == "loading"
    assert_refused(waiting.get("/search?q=dog"), 503)

    taken_back = ServedIndex.from_folder(indexes[0])
    taken_back.status = "ready"  # as for a moment before the check of an index fails
    with pytest.raises(HTTPException, match="503"):
        taken_back.item("a")

    def loaded(folder, model=None):
        served = ServedIndex.from_folder(folder, model=model)
        served.load().join()
        return served

    moved = Path(shutil.copytree(indexes[2], tmp_path / "moved" / "away.index"))
    without_model = loaded(moved)
    assert without_model.status == "failed" and "cannot be used" in str(without_model.fault)
    assert "--model" in capsys.readouterr().err
    assert loaded(moved, str(maxmatch)).status == "ready"
    np.save(moved / "vectors.npy", np.load(moved / "vectors.npy") / 2)
    with TestClient(application([failed := loaded(moved, str(maxmatch))]), ADDRESS) as client:
        health = client.get("/health").json()
        assert health["status"] == failed.status == "failed"
        assert str(tmp_path) not in health["indexes"][0]["error"]
        assert_refused(client.get("/search?q=dog"), 503)
    for folders in ([tmp_path / "none.index"], [indexes[0], indexes[0]]):
        with pytest.raises(ConfigError, match="index"):
            application([ServedIndex.from_folder(folder) for folder in folders])

    def full(*_):
        raise RuntimeError("CUDA error: out of memory\nand more")

    monkeypatch.setattr(Index, "open", full)
    assert loaded(indexes[0]).status == "failed"
    assert "error: index 'photos': CUDA error: out of memory\n" in capsys.readouterr().err
