"""A model folder gives back its method, or one line that says what is wrong with it."""

import json

import pytest
import torch
from hashed_files import edit, flipped_bits, reseal
from safetensors.torch import load_file, save_file
from tiny_run import preset
from torch.testing import assert_close

from manymatch.batch.vocabulary import Vocabulary
from manymatch.methods import build_method
from manymatch.model.checkpoint import (
    PRESET,
    VOCABULARY,
    WEIGHTS,
    load_model,
    load_weights,
    read_weights,
    save_model,
    save_weights,
)
from manymatch.model.facts import FACTS, facts
from manymatch.util.errors import CheckpointError, DataError
from manymatch.util.files import sha256
from manymatch.util.json_file import read_object


@pytest.fixture
def vocabulary(tiny):
    return Vocabulary.load(tiny.vocabulary)


def build(vocabulary, width=24, **model):
    return build_method("tiny", model, vocabulary=vocabulary, feature_width=width)


@pytest.fixture
def folder(tmp_path, vocabulary):
    save_model(tmp_path / "model", build(vocabulary), preset(), vocabulary, 24, rsum=12.5)
    return tmp_path / "model"


def test_tied_modules_are_saved(tmp_path, vocabulary):
    def tied():
        method = build(vocabulary)
        method.again = method.image
        return method

    saved, loaded = tied(), tied()
    with torch.no_grad():
        saved.image.weight += 1
    save_weights(tmp_path / "w", saved.state_dict(), "tiny")
    load_weights(tmp_path / "w", loaded, "tiny")
    assert loaded.again is loaded.image
    for key, value in saved.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value)


@pytest.mark.parametrize("name", [WEIGHTS, PRESET, VOCABULARY, FACTS])
def test_a_missing_file_and_every_flipped_bit_is_one_line_that_names_the_file(folder, name):
    expected = load_model(folder)[0].state_dict()
    for _ in flipped_bits(folder / name, 4):
        with pytest.raises(CheckpointError, match=name) as caught:
            load_model(folder)
        assert "\n" not in str(caught.value)
    assert_close(load_model(folder)[0].state_dict(), expected, rtol=0, atol=0)
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"not a trained model, because {name} is missing"):
        load_model(folder)


def test_a_preset_of_many_bytes_is_not_read(folder):
    """A model from elsewhere may have a file that takes all memory when it is parsed."""
    path = folder / PRESET
    path.write_text(path.read_text() + " " * 2**20)
    edit(folder / FACTS, preset_sha256=sha256(path))
    with pytest.raises(
        (CheckpointError, DataError), match=r"preset\.json: more than 1,048,576 bytes"
    ):
        load_model(folder)


@pytest.mark.parametrize(
    ("change", "method", "message"),
    [
        (dict, "cora", "weights of the method 'cora', but the preset is of"),
        (lambda state: state.pop("image.weight"), "tiny", "lacks 'image.weight'"),
        (lambda state: state.clear(), "tiny", r"lacks 'image.bias' and 4 more"),
        (lambda state: state.update(x=torch.ones(1)), "tiny", "has an unknown 'x'"),
        (
            lambda state: state.update({"image.weight": torch.ones(16, 3)}),
            "tiny",
            r"another shape of 'image.weight \(16, 3\) for \(16, 24\)'",
        ),
    ],
)
def test_weights_that_do_not_fit_are_one_line(folder, change, method, message):
    state = load_file(folder / WEIGHTS)
    change(state)
    save_file(state, folder / WEIGHTS, metadata={"method": method})
    edit(folder / FACTS, weights_sha256=sha256(folder / WEIGHTS))
    with pytest.raises(CheckpointError, match=message) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)
    (folder / WEIGHTS).write_bytes(b"{}")
    with pytest.raises(CheckpointError, match="not readable as safetensors"):
        read_weights(folder / WEIGHTS)


@pytest.mark.parametrize(
    ("size", "message"), [(2**34, "another shape of 'image"), (2**61, "cannot be built")]
)
def test_a_preset_of_enormous_sizes_uses_no_memory(folder, size, message):
    edit(folder / PRESET, model={"size": size})
    edit(folder / FACTS, preset_sha256=sha256(folder / PRESET))
    with pytest.raises(CheckpointError, match=message):
        load_model(folder)


CURVE = [[0.1, 0.2], [0.0, 1.0]]
EXTRACTION = {"preprocessing": "squashed", "weights_sha256": "0" * 64}


def curves(**sides):
    return {"precision": {"image": CURVE, "text": CURVE} | sides}


@pytest.mark.parametrize(
    "lies",
    [
        *({"feature_width": width} for width in ("many", -5, 2**21, 24.5, True, None)),
        *({"parser": name} for name in ("pip", "../x", 5)),
        *({"extraction": value} for value in ("x", [1], {"preprocessing": None})),
        {"extraction": EXTRACTION | {"preprocessing": 5}},
        {"extraction": EXTRACTION | {"backbone": {"name": "lite0"}}},
        *({"precision": value} for value in ("x", [], {}, {"text": CURVE}, {"t2i": CURVE})),
        curves(text=[[0.1], [0.0, 1.0]]),
        curves(text=[[], []]),
        curves(text=[[0.2, 0.1], [0.0, 1.0]]),
        curves(image=[[0.1, float("nan")], [0.0, 1.0]]),
        curves(image=[[0.1, 0.2], [0.0, 1.5]]),
        curves(more=CURVE),
        *({"precision_of": lie} for lie in ("x", {}, {"images": 0, "right": "all"})),
        {"precision_of": {"images": 5, "right": "some"}},
        {"rsum": "high"},
        {"rsum": float("nan")},
        {"epoch": "2"},
        {"method": 5},
        {"dataset": ["scenes"]},
        {"weights_sha256": 5},
        {"vocabulary_sha256": "0" * 63},
    ],
    ids=str,
)
def test_lies_in_the_facts_are_one_line(folder, lies):
    content = read_object(folder / FACTS) | lies
    (folder / FACTS).write_text(json.dumps(content))  # NaN, too
    reseal(folder)
    with pytest.raises(CheckpointError, match=FACTS) as caught:
        load_model(folder)
    assert str(caught.value).isprintable() and next(iter(lies)) in str(caught.value)


def test_facts_of_a_later_version_are_kept(folder):
    edit(folder / FACTS, **curves(), extraction=EXTRACTION | {"backbone": "lite0"}, later=[[1]])
    load_model(folder)
    assert facts(folder)["later"] == [[1]]
