"""Clips of videos through the ordinary stages: captions, features, shards, training, evaluation."""

import json

import pytest
import yaml
from command_line import printed as run
from made_clips import THINGS, VERBS, WORD_SIZE, write_word2vec, write_youcook2

TESTS = 24
PRESET = {
    "method": "swamp_video",
    "features": "howto100m",
    "model": {
        "size": 32,
        "word_size": WORD_SIZE,
        "word2vec_file": "words.bin",
        "n_classes": 12,
        "queue": 48,
        "weight": 0.25,
    },
    "training": {
        "epochs": 12,
        "images_per_batch": 32,
        "captions_per_image": 1,
        "optimizer": {"name": "adam", "lr": 0.01, "weight_decay": 0.0},
        "precision": "32-true",
    },
}


@pytest.fixture
def checkout(root, tmp_path, monkeypatch):
    """A folder with the committed settings, but for where files are, and a small preset."""
    settings = yaml.safe_load((root / "params.yaml").read_text())
    settings["sources"]["youcook2"]["folder"] = "given"
    published = {"youcook2": {"format": "clips", "path": "given"}}
    settings["extraction"]["howto100m"]["published"] = published
    settings |= {"datasets": ["youcook2"], "presets": ["swamp"]}
    settings["features"] = ["howto100m"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "presets" / "youcook2").mkdir(parents=True)
    (tmp_path / "presets" / "youcook2" / "swamp.yaml").write_text(yaml.safe_dump(PRESET))
    (tmp_path / "given").mkdir()
    write_youcook2(tmp_path / "given", 192, TESTS)
    test = tmp_path / "given" / "youcook_val.pkl"
    test.write_bytes(test.read_bytes().replace(b"leek", b"wolf"))
    write_word2vec(tmp_path / "words.bin", [*VERBS, *THINGS, "wolf"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_clips_go_the_way_of_images(checkout):
    run("check")
    for stage in ("download", "captions", "scene-graphs"):
        run(stage, "youcook2")
    run("features", "youcook2", "howto100m")
    run("shards", "youcook2", "howto100m")
    run("train", "youcook2", "swamp")
    run("evaluate", "youcook2", "swamp")
    record = json.loads((checkout / "reports/results/youcook2/swamp.json").read_text())
    # Of 24 clips; by chance it would be a fifth, and 12.
    assert record["t2i"]["r5"] > 60 and record["i2t"]["r5"] > 60
    assert 1 <= record["t2i"]["medr"] <= 4
    words = json.loads((checkout / "models/youcook2/swamp/vocabulary.json").read_text())
    assert "wolf" in words["words"]  # of a test caption alone, but word2vec knows the word
