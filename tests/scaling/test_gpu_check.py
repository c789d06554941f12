"""`make gpu-check` runs on a machine without a GPU too."""

import importlib
import json
import sys

import pytest


@pytest.fixture
def gpu_check(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    return importlib.import_module("gpu_check")


@pytest.mark.slow
def test_each_check_has_lines(gpu_check, tmp_path, monkeypatch):
    written = tmp_path / "new" / "check.json"
    arguments = ["vsepp", "--images", "2", "--stored", "14"]
    arguments += ["--places", "shards", "--parts", "numbers", "epochs", "--json", str(written)]
    monkeypatch.setattr(sys, "argv", ["gpu_check", *arguments])
    gpu_check.main()
    lines = json.loads(written.read_text())["lines"]
    assert not [line for line in lines if line["verdict"] == "FAIL"]
    values = {(line["subject"], line["measured"]): line["value"] for line in lines}
    # The device is the CPU itself.
    assert values["vsepp", "float32: loss differs by"] == 0
    assert values["vsepp, features shards", "images/s"] > 0
    assert values["search", "the same best items"] == 1
