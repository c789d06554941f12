"""The command on a tiny data set: everything is there and adds up; a fault is one line, and what
was written before stays."""

import json
import re
import shutil

import pytest
import torch
import yaml
from command_line import ends

from manymatch.batch.scene_graph import SceneGraph
from manymatch.config.layout import Layout
from manymatch.experiments.costs import efficiency, timing
from manymatch.experiments.costs.efficiency import parser
from manymatch.results.costs import Costs
from manymatch.util.errors import CheckpointError, ConfigError, DataError, ManyMatchError

CPU = torch.device("cpu")
GALLERIES = (10, 100, 10_000)


def parse(caption):
    """No spaCy: words are objects."""
    words = tuple(caption.split())
    return SceneGraph(words, words, ((),) * len(words), ())


@pytest.fixture(autouse=True, scope="module")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(efficiency, "GALLERIES", GALLERIES)
        patch.setattr(efficiency, "parser", lambda _: parse)
        yield


def test_a_model_a_row_and_scan_behind_them(sources, output):
    efficiency.measure("tiny", sources, output, "test", "no-model")
    record = json.loads(output.read_text())
    about = [record[key] for key in ("dataset", "split", "images", "captions")]
    assert about == ["tiny", "test", 8, 24]
    rows = {row["name"]: row for row in record["rows"]}
    assert list(rows) == ["vse_infinity", "dive", "msrm", "cora", "cross-attention"]
    words = 6  # "a red dog above a cat" rather than "a red dog next to a cat"
    counts = [16, 4 * 4 * 16, 2 * 16, 16, 2 * 4 * words * 16]
    assert [row["multiply_adds"] for row in rows.values()] == counts
    assert (rows["dive"]["elements"], rows["dive"]["size"]) == (4, 16)
    scan = rows["cross-attention"]
    assert (scan["method"], scan["setting"], scan["elements"]) == ("scan", None, 4)
    steps = [(row["step"]["images"], row["step"]["captions"]) for row in rows.values()]
    assert steps == [(24, 72)] * 4 + [(24, 24)]  # SCAN's are pairs
    for name, row in rows.items():
        assert list(map(int, row["query"]["search"])) == list(GALLERIES)
        assert (row["query"]["parse"] is None) == (name != "cora")
    assert rows["cora"]["query"]["parse"] > 0
    assert Costs.read(output).rows[1].query.search[10] == rows["dive"]["query"]["search"]["10"]


def _damaged(model, shards, folder):
    shutil.copytree(model, folder / "damaged")
    weights = folder / "damaged" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    return folder / "damaged", shards


FAULTS = {
    "untrained": (lambda _, shards, to: (to / "nothing", shards), CheckpointError, "'train' first"),
    "damaged": (_damaged, CheckpointError, "model.safetensors"),
    "no shards": (lambda model, _, to: (model, to / "nothing"), DataError, "index.json"),
    "no split": (lambda model, shards, _: (model, shards), DataError, "did you mean 'test'"),
    "no parser": (lambda model, shards, _: (model, shards), ConfigError, "not installed"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_before_anything_is_measured(
    sources, output, fault, tmp_path, monkeypatch
):
    spoil, kind, words = FAULTS[fault]
    monkeypatch.setattr(efficiency, "cost_of", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr(efficiency, "parser", parser)
    output.parent.mkdir()
    output.write_text("earlier")
    last = sources[3] if fault == "no parser" else sources[1]  # which reads graphs
    given = [sources[0], spoil(*last, tmp_path)]
    with pytest.raises(ManyMatchError) as error:
        split = "tests" if fault == "no split" else "test"
        efficiency.measure("tiny", given, output, split, "no-model")
    assert isinstance(error.value, kind)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert [path.read_text() for path in output.parent.iterdir()] == ["earlier"]
    with pytest.raises(ConfigError, match="dvc repro"):
        efficiency.measure("tiny", [], output, "test", "no-model")


@pytest.fixture
def checkout(sources, data, tmp_path, monkeypatch):
    """Models of `vse_infinity` and `dive`, of which params.yaml names the first."""
    layout = Layout(tmp_path / "checkout")
    for model, _ in sources[:2]:
        shutil.copytree(model, layout.model("tiny", model.name))
    shutil.copytree(data.shards, layout.shards("tiny", "grid"))
    selected = {"datasets": ["tiny"], "presets": ["vse_infinity", "vsepp"], "features": ["grid"]}
    layout.params.write_text(yaml.safe_dump({**selected, "sources": {}, "extraction": {}}))
    monkeypatch.chdir(layout.root)
    return layout


def test_the_command_measures_what_is_trained_and_prints_the_table(checkout, monkeypatch, capfd):
    table = ends("efficiency tiny", 0, monkeypatch, capfd).out
    rows = Costs.read(checkout.reports / "efficiency" / "tiny.json").rows
    assert [row.name for row in rows] == ["vse_infinity", "cross-attention"]
    assert re.search(r"^vse_infinity +\d \u00d7", table, re.MULTILINE)
    assert table.splitlines()[-1] == "reports/efficiency/tiny.json"


def test_a_median_leaves_out_the_warm_up(monkeypatch):
    took = {1: 9.0, 2: 9.0, 3: 9.0, 4: 1.0, 5: 3.0, 6: 2.0}
    monkeypatch.setattr(timing, "seconds", lambda work, _: took[work()])
    assert timing.median_seconds(lambda item: item, took, CPU) == 2.0
