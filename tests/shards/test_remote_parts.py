"""Shards that are made part by part at a URL are those of the whole, and leave nothing behind."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from command_line import configured_with, fails, run
from killing import kill_during
from PIL import Image
from tiny_data import make_data

from manymatch.cli.project import LAYOUT
from manymatch.shards import remote_writing
from manymatch.shards.remote_writing import put


@pytest.fixture
def project(root, tmp_path, monkeypatch, one_thread):
    """A project with pictures and tables of 20 images, in shards of four."""
    (made := tmp_path / "made").mkdir()
    data = make_data(made, {"train": 12, "validation": 4, "test": 4})
    configured_with(data, root, tmp_path, monkeypatch)
    files = pq.read_table(data.captions)["file"].unique().to_pylist()
    for number, file in enumerate(files):
        Image.new("RGB", (48, 32), (9 * number, 200, 40)).save(LAYOUT.raw("scenes") / file)
    return tmp_path


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def left():
    return [path for path in Path("data/parts").rglob("*") if path.is_file()]


def written(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.tar")}


def set_thumbnail(size):
    settings = yaml.safe_load(Path("params.yaml").read_text())
    settings["shards"]["thumbnail"] = size
    Path("params.yaml").write_text(yaml.safe_dump(settings))


@pytest.mark.parametrize("features", ["grid", "lite0"])
def test_parts_are_the_shards_of_the_whole(project, features, monkeypatch, capfd):
    """From a store of all images (`grid`), and with features that each part makes."""
    words, away = f"shards scenes {features} --to file://{project}", project / "away" / features
    if features == "lite0":
        run("features scenes lite0", monkeypatch)
    run(f"{words}/whole", monkeypatch)
    shutil.rmtree(LAYOUT.shards("scenes", features))
    if features == "lite0":
        LAYOUT.features("scenes", "lite0").unlink()
    for number in (3, 1):
        run(f"{words}/away --part {number}/3", monkeypatch)
    assert not (away / "SEAL.json").exists()
    kill_during(
        lambda: run(f"{words}/away --part 2/3", monkeypatch),
        "manymatch.shards.remote_writing.write_json",
        1,
    )
    assert not (away / "SEAL.json").exists()
    run(f"{words}/away --part 2/3", monkeypatch)
    assert content(away) == content(project / "whole" / features)
    assert not LAYOUT.shards("scenes", features).exists()
    assert not left()

    capfd.readouterr()
    run(f"{words}/away --part 1/3", monkeypatch)
    assert "already there" in capfd.readouterr().err
    record = next(away.glob("parts/*/2-of-3.json"))
    facts = json.loads(record.read_text())
    facts["index"]["attributes"]["weights_sha256"] = "other"
    record.write_text(json.dumps(facts))
    assert "different" in fails(f"{words}/away --part 1/3", monkeypatch, capfd)
    assert "fewer shards" in fails(f"{words}/away --part 7/7", monkeypatch, capfd)


def test_a_seal_never_stands_above_shards_that_are_not_its_own(project, monkeypatch, capfd):
    """Slow machines, kills, damaged records, and parts of another setting in between."""
    away = project / "away" / "grid"
    part = f"shards scenes grid --to file://{project}/away --part"
    for number in (1, 2):
        run(f"{part} {number}/2", monkeypatch)
    sealed, record = content(away), next(away.glob("parts/*/2-of-2.json"))
    whole = record.read_text()
    for damaged in ("", whole[:-9], json.dumps(json.loads(whole) | {"shards": {}})):
        record.write_text(damaged)
        run(f"{part} 2/2", monkeypatch)
        assert (record.read_text(), content(away)) == (whole, sealed)

    record.unlink()
    times, inner = written(away), remote_writing.store_rows

    def overtaken(*args):
        record.write_text(whole)
        return inner(*args)

    with monkeypatch.context() as slow:
        slow.setattr(remote_writing, "store_rows", overtaken)
        run(f"{part} 2/2", slow)
    assert written(away) == times
    assert not left()

    record.unlink()
    kill_during(
        lambda: run(f"{part} 2/2", monkeypatch), "manymatch.shards.remote_writing.write_json", 1
    )
    assert left()
    set_thumbnail(8)
    run(f"{part} 2/2", monkeypatch)
    assert not left() and not record.exists() and not (away / "SEAL.json").exists()
    set_thumbnail(16)
    kill_during(
        lambda: run(f"{part} 1/2", monkeypatch), "manymatch.shards.remote_writing.remove", 1
    )
    assert left()
    capfd.readouterr()
    run(f"{part} 1/2", monkeypatch)
    assert "already there" in capfd.readouterr().err and not left()
    run(f"{part} 2/2", monkeypatch)
    assert content(away) == sealed


def test_a_kill_leaves_the_earlier_file_at_the_url(tmp_path):
    (new := tmp_path / "new").write_text("new")
    (target := tmp_path / "target").write_text("old")
    url = f"file://{target}"
    kill_during(lambda: put(new, url), "manymatch.util.files.move_into_place", 1)
    assert target.read_text() == "old"
    put(new, url)
    assert target.read_text() == "new" and {*tmp_path.iterdir()} == {new, target}
