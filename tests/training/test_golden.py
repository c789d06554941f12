"""Three steps of every method through `manymatch train` give the recorded losses.

The record holds the losses of each step and, of every parameter and buffer, the sum of absolute
values before the first step. A change of the record is a change of published numbers: say why in
the commit. The record is written anew by

    PYTHONPATH=src:tests/helpers python tests/training/test_golden.py
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
import torch
import yaml
from small_methods import NAMES, small
from tiny_data import make_data, write_table

from manymatch.batch.vocabulary import Vocabulary
from manymatch.cli import commands
from manymatch.config.layout import Layout
from manymatch.datasets.base import RELEVANCE
from manymatch.methods import build_method, method_class
from manymatch.training.loop import reseed

RECORD = Path(__file__).with_suffix(".json")
TOLERANCE = 1e-5
STEPS = 3
WIDTH = 8
DROPOUT = {
    "vsepp": {"feature_dropout": 0.1, "word_dropout": 0.1},
    "vse_infinity": {"embedding_dropout": 0.1},
    "swamp": {"embedding_dropout": 0.1},
    "cora": {"concept_dropout": 0.1, "graph_dropout": 0.1},
    "dive": {"sets": {"dropout": 0.1}},
    "pcmepp": {"mixing": 0.5},
}
"""So that the order of random draws counts too."""


def preset(name):
    """One step an epoch, so that the curves hold the losses of every step."""
    drops = {"word_drop": 0.2, "region_drop": 0.2}
    if method_class(name).reads_graphs:
        drops["attribute_drop"] = 0.2
    return {
        "method": name,
        "features": "grid",
        "model": small(name, DROPOUT.get(name)),
        "augmentation": drops,
        "training": {
            "epochs": STEPS,
            "images_per_batch": 24,
            "optimizer": {"lr": 0.003},
            "precision": "32-true",
        },
    }


def make_checkout(root):
    """Shards and presets of the data set `tiny` in the folder `root`."""
    layout = Layout(root)
    layout.params.touch()
    data = make_data(root, width=WIDTH, variable=True)
    data.write_shards()
    shutil.copytree(data.shards, layout.shards("tiny", "grid"))
    layout.vocabulary("tiny").parent.mkdir()
    shutil.copy(data.vocabulary, layout.vocabulary("tiny"))
    write_table(layout.relevance("tiny"), [], RELEVANCE)  # only the pairs are known to be true
    (layout.presets / "tiny").mkdir(parents=True)
    for name in NAMES:
        (layout.presets / "tiny" / f"{name}.yaml").write_text(yaml.safe_dump(preset(name)))


def golden(name):
    """What is recorded of the method `name`, in the checkout that is the current folder."""
    return {"losses": losses(name), "weights": weights(name)}


def losses(name):
    """Term -> its value in each step."""
    command, sys.argv = sys.argv, ["manymatch", "train", "tiny", name]
    try:
        with pytest.raises(SystemExit) as ended:
            commands.main()
    finally:
        sys.argv = command
    assert ended.value.code == 0
    curves = Layout().curves("tiny", name) / "plots" / "metrics" / "train"
    return {path.stem: values(path) for path in sorted(curves.glob("*.tsv"))}


def values(curve):
    return [float(line.split("\t")[1]) for line in curve.read_text().splitlines()[1:]]


def weights(name):
    """Name -> sum of absolute values, as training begins."""
    words = Vocabulary.load(Layout().vocabulary("tiny"))
    reseed(0, 0, 0)
    method = build_method(name, preset(name)["model"], vocabulary=words, feature_width=WIDTH)
    state = method.state_dict()
    return {key: float(value.double().abs().sum()) for key, value in state.items()}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    make_checkout(folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_three_steps_give_the_recorded_losses(name, checkout, monkeypatch):
    pytest.importorskip("dvclive")
    monkeypatch.chdir(checkout)
    expected = json.loads(RECORD.read_text())[name]
    result = golden(name)
    assert list(result["weights"]) == list(expected["weights"])
    assert result["weights"] == pytest.approx(expected["weights"], rel=TOLERANCE)
    assert result["losses"].keys() == expected["losses"].keys()
    assert result["losses"]["loss"][0] > 0  # also of losses that warm up: an epoch may be one step
    for term, steps in expected["losses"].items():
        assert len(steps) == STEPS
        assert result["losses"][term] == pytest.approx(steps, rel=TOLERANCE), term


def write_record():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        make_checkout(Path(folder))
        os.chdir(folder)
        RECORD.write_text(json.dumps({name: golden(name) for name in NAMES}, indent=1) + "\n")


if __name__ == "__main__":
    write_record()
