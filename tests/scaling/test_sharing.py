"""Stages that one clone has run are not run by another, without a word by way of git."""

import logging
from pathlib import Path

import pytest
from dvc.data_cloud import DataCloud
from dvc.stage.cache import RunCacheNotSupported, StageCache

from manymatch.util.errors import ConfigError
from pipelines import sharing
from pipelines.graph import RemoteFailed, is_made, read_graph
from pipelines.stage import run_stage

pytestmark = pytest.mark.slow


@pytest.fixture
def said():
    return []


@pytest.fixture(autouse=True)
def _turned_on(monkeypatch):
    monkeypatch.setenv(sharing.SHARE, "1")
    monkeypatch.setattr(sharing, "get_run_logger", logging.getLogger)


def test_another_clone_takes_what_was_pushed(new_clone, remote, monkeypatch, said):
    monkeypatch.chdir(new_clone("first").folder)
    assert run_stage("double", said.append, {}) is None
    assert "computing" in said
    sharing.push.fn("double")
    monkeypatch.chdir(new_clone("second").folder)
    said.clear()
    sharing.pull.fn("double")
    remote.rename(remote.with_name("away"))  # it was looked at, and once is enough
    assert "taken from DVC's cache" in (run_stage("double", said.append, {}) or "")
    assert "computing" not in said and Path("twice").read_text() == "42\n"
    # What git keeps (`cache: false`) is not in the remote: its stage runs again.
    assert run_stage("show", said.append, {}) is None and Path("shown").read_text() == "42\n"


def test_it_is_known_before_whether_a_stage_has_to_run(new_clone, monkeypatch, said):
    monkeypatch.chdir(new_clone("first").folder)
    known = [stage.command for stage in read_graph(Path()).stages]
    assert known == ["sh double.sh", "cp twice shown"]
    assert not is_made(Path(), "double", pull=False)
    run_stage("double", said.append, {})
    assert is_made(Path(), "double", pull=False)
    monkeypatch.chdir(new_clone("second").folder)
    said.clear()
    assert not is_made(Path(), "double", pull=True)  # it was not pushed
    assert run_stage("double", said.append, {}) is None and "computing" in said
    sharing.push.fn("double")
    Path("number").write_text("4\n")
    assert not is_made(Path(), "double", pull=True)
    with pytest.raises(ConfigError, match="triple"):
        is_made(Path(), "triple", pull=False)


def test_a_remote_that_cannot_be_reached_stops_a_run_before_its_stage_or_is_told(
    new_clone, monkeypatch, tmp_path
):
    clone = new_clone("first")
    monkeypatch.chdir(clone.folder)
    sharing.pull.fn("double")  # nothing was pushed yet: the remote has no folder

    def failing(error):
        def fail(*_):
            raise error

        return fail

    monkeypatch.setattr(StageCache, "pull", failing(RunCacheNotSupported("http")))
    assert not is_made(Path(), "double", pull=True)  # a remote that keeps no runs is borne
    monkeypatch.setattr(DataCloud, "get_remote", failing(ConnectionError("no route\nto host")))
    with pytest.raises(RemoteFailed, match=r"^DVC's remote: no route to host. double was not run"):
        sharing.pull.fn("double")
    run_stage("double", [].append, {})
    (tmp_path / "file").touch()
    clone.run("dvc", "remote", "modify", "shared", "url", str(tmp_path / "file" / "remote"))
    with pytest.raises(sharing.PushFailed, match="double is finished here, but could not be"):
        sharing.push.fn("double")
    assert Path("twice").read_text() == "42\n"


def test_a_remote_that_is_missing_or_needs_a_package_or_is_not_mounted_is_told(
    new_clone, remote, monkeypatch, said
):
    clone = new_clone("first")
    monkeypatch.chdir(clone.folder)
    for _ in range(2):
        assert sharing.shared(said.append)
        assert said.pop().startswith(f"DVC's remote {remote} is empty. ") and not said
        remote.mkdir(exist_ok=True)
    (remote / "runs").mkdir()
    assert sharing.shared(said.append) and not said
    clone.run("dvc", "remote", "modify", "shared", "url", "ssh://head/manymatch")
    with pytest.raises(ConfigError, match=r"remote: ssh is supported, but .*'\.\[remotes\]'"):
        sharing.shared(said.append)
    clone.run("dvc", "remote", "remove", "-q", "shared")
    with pytest.raises(ConfigError, match="no default remote"):
        sharing.shared(said.append)
    monkeypatch.setenv(sharing.SHARE, "yes")
    with pytest.raises(ConfigError, match="expected 1 or 0"):
        sharing.shared(said.append)
    monkeypatch.delenv(sharing.SHARE)
    assert not sharing.shared(said.append)
