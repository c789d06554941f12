"""The command line: a user's fault is one line and exit code 1, in any stage."""

import errno
import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from manymatch.cli import commands
from manymatch.util import progress

STAGES = {
    "captions scenes": "download scenes",
    "features scenes lite0": "the stage 'captions'",
    "scene-graphs scenes": "the stage 'captions'",
    "shards scenes lite0": "captions",
    "train scenes vsepp": "shards",
    "evaluate scenes vsepp": "train",
    "ensemble scenes vsepp cora": "train",
    "experiment scenes vsepp --over size=4,8": "shards",
    "score scenes --scores s.npy": "captions",
    "clusters scenes swamp": "train",
    "efficiency scenes": "dvc repro",
    "efficiency scenes vsepp": "train",
    "report": "dvc repro",
    "readme": "markers",
}
"""Stage -> what its message tells to run when nothing is there yet."""
FAULTS = STAGES | {
    "download flickr9k": "did you mean 'flickr8k'?",
    "features scenes lit0": "did you mean 'lite0'?",
    "features scene lite0": "did you mean 'scenes'?",
    "train scenes vsep": "did you mean 'vsepp'?",
    "train scenes vsepp --set training.epoch=3": "did you mean 'epochs'?",
    "train scenes vsepp --set training.schedule.every=3": "cosine without restarts does not read",
    "train scenes vsepp --set epochs": "expected KEY=VALUE",
    "train scenes vsepp --set seed=1 --set seed=2": "--set seed: the key is given twice",
    "train scenes vsepp --set seed=[1": "--set seed=[1: not a YAML value",
    "train scenes vsepp --as a+b": "is not a name",
    "experiment scenes vsepp --over size=4} --set seed=1": "--over size=4}: not a YAML value",
    "evaluate scenes vsep": "did you mean 'vsepp'?",
    "score scenes --similarity cosin": "did you mean 'cosine'?",
    "experiment scenes vsepp --over siz=4": "did you mean 'size'?",
    "experiment scenes vsepp --over size": "expected KEY=VALUE",
    "experiment scenes vsepp": "--over KEY=V1,V2",
    "experiment what.yaml --over size=4": "Leave out PRESET and --over",
    "experiment scenes vsepp cora --over preset=cora": "given twice",
    "experiment scenes vsepp --dataset scenes": "Leave out --dataset",
}


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("command", FAULTS)
def test_a_missing_input_and_a_mistyped_name_are_one_line(command, fails):
    assert FAULTS[command] in fails(command)


PARAMS = [
    ("presets", ["corra"], "did you mean 'cora'?"),
    ("features", ["lite0", "lit0"], "did you mean 'lite0'?"),
    ("dataset", [], "did you mean 'datasets'?"),
    ("datasets", [], "datasets"),
    ("datasets", ["scenes", "scenes"], "listed twice: scenes"),
    ("presets", ["../scenes/vsepp"], "presets.0"),
    ("datasets", ["../elsewhere"], "datasets.0"),
    ("ensembles", ["vsepp+.."], "ensembles.0"),
    ("ensembles", ["vsepp+dive"], "no stage trains 'dive'"),
    ("indexes", {"a": {"source": "b", "model": "scenes/coraa"}}, "did you mean 'cora'?"),
    ("warm_starts", {"a": {"dataset": "a", "preset": "b", "model": "../c"}}, "model"),
    ("experiments", {"../x": "scenes"}, "experiments"),
    ("shards", {"images_per_shard": True}, "expected a number"),
    ("shards", {"urls": {"scenez": "s3://a/b"}}, "shards.urls: no data set 'scenez'; did you mean"),
    (
        "extraction",
        {"lite0": {"published": {"scenez": {"format": "scan", "path": "a"}}}},
        "extraction.lite0.published: no data set 'scenez'; did you mean 'scenes'",
    ),
    ("evaluation", {"elements": {"images": [[1, True]]}}, "expected a number"),
]
"""Keys of params.yaml with faulty values, and what the line says."""


def test_check_finds_what_would_fail_later(checkout, fails, ends):
    path = checkout / "params.yaml"
    whole = path.read_text()
    for key, value, hint in PARAMS:
        change(path, {key: value})
        assert hint in fails("check")
        path.write_text(whole)
    names = {"datasets": ["scenez", "scenes"], "presets": ["corra", "swampp"], "features": ["x"]}
    change(path, names)
    shown = ends("check", 1).err  # all faults
    assert all(hint in shown for hint in ("'scenes'", "'cora'", "'swamp'", "extraction.x"))


def change(path, changes):
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))


def test_check_refuses_an_unknown_method_and_its_unknown_settings(checkout, fails):
    path = checkout / "presets" / "scenes" / "cora.yaml"
    for changes, hint in (({"model": {"siz": 64}}, "'size'"), ({"method": "coral"}, "'cora'")):
        change(path, changes)
        for command in ("check", "train scenes cora", "plan scenes cora"):
            line = fails(command)
            assert f"did you mean {hint}?" in line and "presets/scenes/cora.yaml: " in line


def test_check_passes_what_is_committed(root, monkeypatch, ends):
    monkeypatch.chdir(root)
    assert "all known" in ends("check", 0).err
    assert "Did you mean 'evaluate'?" in ends("evalute", 2).err


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "the same command"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"), 1, "the memory is"),
        (MemoryError(), 1, "the memory is not enough ("),
        (RuntimeError("can't start new thread"), 1, "ulimit"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), 1, "ulimit"),
        (PermissionError(errno.EACCES, "Permission denied", "secret\x1b[2J.json"), 1, "permission"),
    ],
)
def test_a_fault_in_any_place_is_no_traceback(fault, code, message, monkeypatch, ends):
    def failing():
        raise fault

    monkeypatch.setattr(commands, "app", failing)
    line = ends("report", code).err.strip()
    assert message in line and line.isprintable()


def test_a_closed_stream_reads_and_writes_nothing(monkeypatch):
    """Python has None in the place of a stream that is closed at its start."""

    def uses_all():
        sys.stdin.isatty()
        progress.say("epoch 1")
        print("a result")

    monkeypatch.setattr(sys, "argv", ["manymatch", "train", "scenes"])
    monkeypatch.setattr(commands, "app", uses_all)
    for name in ("stdin", "stdout", "stderr"):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, None)
            commands.main()
            with getattr(sys, name) as stream:
                assert os.get_inheritable(stream.fileno())
                assert os.path.samestat(os.fstat(stream.fileno()), Path(os.devnull).stat())


def test_a_terminal_without_utf8(monkeypatch, fails):
    monkeypatch.setattr(sys, "argv", ["manymatch", "results"])
    monkeypatch.setattr(commands, "app", lambda: print("text \u2192 image"))
    with monkeypatch.context() as patch:
        stream = io.TextIOWrapper(io.BytesIO(), "ascii")
        patch.setattr(sys, "stdout", stream)
        commands.main()
        stream.seek(0)
        assert stream.read() == "text \\u2192 image\n"
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    assert "names and texts as ascii. Set PYTHONUTF8=1" in fails(["search", "a.index", "gr\xfcn"])


def test_a_full_disk_under_standard_output_is_one_line(checkout):
    command = [sys.executable, "-m", "manymatch", "backbone", "--help"]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, env=buffered, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"error: no space left") and ended.stderr.count(b"\n") == 1


def step_that_prints():
    with progress.working("epoch 1"):
        time.sleep(0.05)


@pytest.mark.parametrize("begin", [lambda: progress.say("epoch 1"), step_that_prints])
def test_a_command_is_loading_until_it_prints_something_or_begins_a_step(monkeypatch, begin):
    def loads_then_works():
        while "\n" not in shown.getvalue():
            time.sleep(0.001)
        begin()
        time.sleep(0.05)

    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.001)
    monkeypatch.setattr(sys, "argv", ["manymatch", "train", "scenes"])
    monkeypatch.setattr(commands, "app", loads_then_works)
    commands.main()
    assert shown.getvalue().startswith("train scenes: loading")
    assert "epoch 1" in shown.getvalue().splitlines()[-1]


def test_what_needs_no_heavy_library_loads_none(root):
    """Such as a faulty setting."""
    code = """
import runpy, sys
sys.argv = ["manymatch", "train", "scenes", "vsepp", "--set", "method=milnce"]
try:
    runpy.run_module("manymatch", run_name="__main__")
finally:
    print("loaded:", {"torch", "spacy"} & sys.modules.keys())
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert "vsepp.yaml: method 'milnce' does not exist" in shown.stderr
    assert "loaded: set()" in shown.stdout


def test_outside_a_project_every_command_says_so(tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    others = "check", "code", "download scenes", "rerank scenes cora", "probe scenes a"
    for command in (*STAGES, *others):
        line = fails(command)
        assert "no project here" in line and "To start a project" in line


def test_an_output_that_cannot_be_written_is_one_line(checkout, fails):
    data = checkout / "data"
    for damage in (Path.touch, lambda path: path.symlink_to("nowhere"), lambda p: p.symlink_to(p)):
        damage(data)
        line = fails("code")
        assert "data" in line and "Remove" in line
        data.unlink()


def test_a_mount_point_as_output_is_one_line(checkout, fails):
    """The output of the stage `code` is a disk of its own of 4 KiB."""
    folder = checkout / "data" / "code"
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a disk")
    try:
        assert "mount" in fails("code")
    finally:
        subprocess.run(["umount", str(folder)], check=True)
