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
    arguments = ["vsepp", "--images", "2", "--stored", "14", "--processes", "2"]
    arguments += ["--places", "shards", "--json", str(written)]
    monkeypatch.setattr(sys, "argv", ["gpu_check", *arguments])
    gpu_check.main()
    lines = json.loads(written.read_text())["lines"]
    assert not [line for line in lines if line["verdict"] == "FAIL"]
    values = {(line["subject"], line["measured"]): line["value"] for line in lines}
    # The device is the CPU itself.
    assert values["vsepp", "float32: loss differs by"] == 0
    assert values["vsepp, features shards", "images/s"] > 0
    assert values["2 processes", "step 3: loss differs from one process's by"] < 1e-5
    assert values["search", "the same best items"] == 1


def test_a_check_that_breaks_is_a_line(gpu_check, tmp_path):
    report = gpu_check.Report(1.0, tmp_path / "check.json")

    def broken():
        yield "a number", 3.0, "at most 2", lambda value: value <= 2
        raise RuntimeError("no kernel\nimage")

    report.add("cora", broken)
    report.add("dive", lambda: [("another", 1.0, "", None)])
    verdicts = [(line["subject"], line["verdict"]) for line in report.lines]
    assert verdicts == [("cora", "FAIL"), ("cora", "FAIL"), ("dive", "")]
    assert "no kernel image" in report.lines[1]["measured"]
    report = gpu_check.Report(0.0, tmp_path / "check.json")
    report.add("dive", lambda: [("another", 1.0, "", None)])
    assert report.lines[0]["verdict"] == "LEFT OUT"
