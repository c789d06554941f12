"""Damaged settings, and damaged JSON and CSV files of the stages: one line, in bounded time."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from manymatch.batch.vocabulary import Vocabulary
from manymatch.cli import commands, project
from manymatch.config.preset import read_preset
from manymatch.datasets.fetching.transfer import Download, Expected
from manymatch.datasets.rows import csv_rows
from manymatch.evaluation.external.split_table import read_ids, read_split
from manymatch.experiments.engine import Run
from manymatch.model.facts import facts
from manymatch.results.machine import MachineRecord
from manymatch.results.metrics import Provenance
from manymatch.results.runs import read_curves
from manymatch.shards.index import read_index
from manymatch.util.errors import ManyMatchError
from manymatch.util.json_file import read_object
from manymatch.util.seal import sealed

SIGNS = "[ ] { } - : ? , # | > --- %YAML ' = 0o9 true null ~ -1 .nan .inf 1e999 1:1:1.5 2026-13-01"
YAML = ["&a ", "*a", "&a [*a, *a]", "<<: *a", "!!int ''", "!!bool x", "!x ", "- ", "? ", ": "]
LONG = ["[" * 3000, "{a: " * 2000, "- " * 3000, "x" * 3000, "9" * 5000, "0x" + "f" * 5000]
CHARACTERS = list('\n\t\0\x85\x1b\u202e\ud800\ufeff\u2028"/é')
FRAGMENTS = st.sampled_from([*SIGNS.split(), *YAML, *LONG, *CHARACTERS, "../../x"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**60, max_value=2**70),
    st.floats(allow_subnormal=False),  # a library may have turned them off
    st.text(max_size=20),
    st.dates(),
    FRAGMENTS.filter(lambda text: text.isprintable()),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def damaged(draw, text):
    """`text` with pieces replaced by fragments."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 30))
        text = text[:start] + draw(FRAGMENTS | st.text(max_size=10)) + text[end:]
    return text.encode("utf-8", "surrogatepass")


@st.composite
def changed(draw, stated):
    """`stated` with one value replaced, at any depth, or one key added."""
    if not isinstance(stated, dict | list) or not stated or draw(st.integers(0, 3)) == 0:
        return draw(VALUES)
    if isinstance(stated, list):
        at = draw(st.integers(0, len(stated) - 1))
        return [*stated[:at], draw(changed(stated[at])), *stated[at + 1 :]]
    key = draw(st.sampled_from(sorted(stated)) | st.text(max_size=8))
    return {**stated, key: draw(changed(stated.get(key)))}


def texts(stated, write):
    """Damaged files with the content `stated`."""
    return damaged(write(stated)) | changed(stated).map(
        lambda value: write(value).encode("utf-8", "surrogatepass")
    )


PARAMS = {
    "datasets": ["scenes"],
    "presets": ["vsepp"],
    "features": ["lite0"],
    "warm_starts": {},
    "ensembles": ["vsepp+cora"],
    "experiments": {"fuzz": "scenes"},
    "sources": {"scenes": {"seed": 0, "train": 1200, "twins": 0.4}},
    "extraction": {"lite0": {"batch_size": 32, "regions": [36, 36], "published": {}}},
    "evaluation": {"split": "test", "elements": {"images": [[1]], "projected": None}},
}
EXPERIMENT = {
    "about": "Made up.",
    "dataset": "scenes",
    "preset": {"scenes": "vsepp"},
    "published": {"coco": "Table 1"},
    "points": {"a": {"size": 4}, "b": {"training.epochs": 2, "preset": "cora"}},
    "seeds": [0, 1],
}


def to_yaml(value):
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


@pytest.fixture(scope="module")
def checkout(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    for name in ("vsepp", "cora"):
        target = folder / "presets" / "scenes" / f"{name}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / "presets" / "scenes" / f"{name}.yaml", target)
    (folder / "params.yaml").write_text(to_yaml(PARAMS))
    (folder / "experiments").mkdir()
    (folder / "experiments" / "fuzz.yaml").write_text(to_yaml(EXPERIMENT))
    return folder


PRESET = yaml.safe_load((Path(__file__).parents[2] / "presets/scenes/cora.yaml").read_text())
FILES = {
    "params.yaml": PARAMS,
    "presets/scenes/vsepp.yaml": PRESET,
    "experiments/fuzz.yaml": EXPERIMENT,
}


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_damaged_settings(name, data, checkout, limits):
    content = data.draw(texts(FILES[name], to_yaml))
    path = checkout / name
    whole = path.read_bytes()
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.chdir(checkout)
        patch.setattr(sys, "argv", ["manymatch", "check"])
        patch.setattr(sys, "stderr", shown)
        path.write_bytes(content)
        try:
            with limits():
                commands.main()
        finally:
            path.write_bytes(whole)
    lines = shown.getvalue().splitlines()
    assert ended.value.code == (1 if lines[-1].startswith("error: ") else 0)
    assert all(line.isprintable() and len(line) < 1100 for line in lines)


@given(text=damaged("training.optimizer.lr=1e-4") | damaged("model.a.b={c: [1, 2]}"))
def test_damaged_overrides(text, checkout, limits):
    preset = checkout / "presets" / "scenes" / "cora.yaml"
    with limits():
        refused_or(
            lambda: read_preset(preset, dict([project.override(text.decode("utf-8", "replace"))]))
        )


def refused_or(read):
    """Read a file, which may end in one line."""
    try:
        read()
    except ManyMatchError as error:
        assert str(error).isprintable()


def run_of(path):
    return Run("a", {}, 0, "code", path.parent).numbers()


def rows_of(path):
    return list(csv_rows(path, "video_id", "sentence"))


def sealed_first(read):
    """`read` for a file in a folder that its author has sealed."""

    def run(path):
        with sealed(path.parent / "sealed") as partial:
            partial.mkdir()
            shutil.copy(path, partial)
        return read(path.parent / "sealed")

    return run


HASH = "0" * 64
JSON = {
    "index.json": (
        sealed_first(read_index),
        """{"dataset": "scenes", "features": "lite0", "width": 4, "max_regions": 2, "boxes": false,
        "attributes": {"a": "b"}, "splits": {"test": {"images": 3, "captions": 6,
        "shards": ["test-0.tar"], "shard_images": [3]}}}""",
    ),
    "vocabulary.json": (Vocabulary.load, '{"words": ["<pad>", "<unk>", "<mask>", "a", "cat"]}'),
    "machine.json": (
        MachineRecord.read,
        """{"train": {"date": "2026-01-01", "host": "h", "device": "cpu", "seconds": 1.0,
        "peak_memory_mb": 3.0}}""",
    ),
    "model.json": (
        sealed_first(facts),
        f"""{{"method": "vsepp", "feature_width": 4, "weights_sha256": "{HASH}", "preset_sha256":
        "{HASH}", "vocabulary_sha256": "{HASH}", "parser": "en_core_web_sm", "rsum": 12.5,
        "precision": {{"image": [[0.1, 0.2], [0, 1]], "text": [[0.5], [0.5]]}}}}""",
    ),
    "result.json": (run_of, '{"numbers": {"a": 1}, "code": "code"}'),
    "provenance/scenes/cora.json": (
        Provenance.read,
        """{"dataset": "scenes", "preset": "cora", "method": "cora", "split": "test", "seed": 0,
        "features": "lite0", "setting": "small-scale", "images": 3, "captions": 4, "members":
        [{"preset": "a", "method": "b", "seed": 1, "features": "c"}]}""",
    ),
    "archive.zip.json": (
        lambda path: Download("http://host/x", path.with_suffix(""), Expected()).resume_point(),
        '{"url": "http://host/x", "validator": null}',
    ),
    "object.json": (read_object, '{"images": [{"sentences": [{"raw": "a"}]}]}'),
}
CSV = {
    "rows.csv": (rows_of, 'video_id,sentence\nv1,"a man, runs"\nv2,"a ""cat"""\n'),
    "table.csv": (
        lambda path: read_split(path, "test"),
        "image_id,caption_id,split,labels\na,a#0,test,1 2\nb,b#0,test,\n",
    ),
    "ids.txt": (read_ids, "a\nb\n"),
    "plots/metrics/loss.tsv": (lambda path: read_curves(path.parents[2]), "step\tloss\n0\t1.5\n"),
}
DEEP = st.sampled_from([b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5_000, b""])


@pytest.mark.parametrize("name", [*JSON, *CSV])
@given(data=st.data())
def test_damaged_files(name, data, tmp_path_factory, limits):
    if name in JSON:
        read, whole = JSON[name]
        cases = texts(json.loads(whole), lambda value: json.dumps(value, default=str))
    else:
        read, whole = CSV[name]
        cases = damaged(whole)
    content = data.draw(cases | DEEP)
    path = tmp_path_factory.getbasetemp() / "files" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with limits():
        refused_or(lambda: read(path))
