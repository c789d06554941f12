"""A model with a pretrained text model in it is trained from the folder of the text model, resumes
to the same bytes, and never needs the folder again."""

import shutil

import hub_texts
import pytest
import torch
from killing import kill_during
from small_methods import small
from tiny_bert import PIECES, make_bert
from tiny_data import COLOURS, OBJECTS, RELATIONS

from manymatch.batch.pieces import Pieces
from manymatch.config.preset import Preset
from manymatch.model.checkpoint import load_model
from manymatch.model.embed import embed
from manymatch.networks.layers.lora import LoRALinear
from manymatch.shards.read import batches

WORDS = {*OBJECTS, *COLOURS, *" ".join(RELATIONS).split(), "one"}
KINDS = {
    "bert": ("cora", {"concept_encoder": "bert"}, {"tuning": "prefix"}),
    "clip": ("dive", {}, {"train": "lora", "rank": 2}),
    "t5": ("vse_infinity", {}, {"train": "all"}),
}
"""Text model -> method, its settings, and those of the text model."""


@pytest.fixture(params=[*KINDS])
def trained(request, tmp_path):
    """The folder of a text model, and a preset that trains the model."""
    name, (method, settings, text) = request.param, KINDS[request.param]
    folder = tmp_path / name
    if name == "bert":
        make_bert(folder, [*PIECES, *sorted(WORDS - {*PIECES})])
        group = {"bert": {"weights": str(folder), **text}}
    else:
        hub_texts.save(folder, name)
        group = {"hf": {"model": str(folder), **text}}
    if method == "cora":
        settings = settings | group
    else:
        settings = settings | {"text": {"encoder": "hf", **group}}
    drops = {"phrase_word_mask": 0.2, "object_drop": 0.1}
    preset = {
        "method": method,
        "features": "grid",
        "model": small(method, settings),
        "augmentation": {"word_drop": 0.2, **(drops if method == "cora" else {})},
        "training": {
            "epochs": 2,
            "images_per_batch": 16,
            "captions_per_image": 1,
            "optimizer": {"lr": 0.01},
        },
    }
    return folder, Preset.model_validate(preset)


@pytest.mark.slow
def test_a_trained_model_brings_its_text_model_along(trained, new_run, capsys):
    folder, preset = trained
    whole, killed = new_run("whole"), new_run("killed")
    whole.train(preset)
    if folder.name == "bert":
        step = "manymatch.training.loop.Losses.forward"
        kill_during(lambda: killed.train(preset), step, 5)
        killed.train(preset)
        assert killed.outputs() == whole.outputs()
    shutil.rmtree(folder)
    method, run_preset, vocabulary = load_model(whole.model)
    assert isinstance(vocabulary, Pieces)
    assert (run_preset, vocabulary.pretrained) == (preset, None)
    assert not any(isinstance(part, LoRALinear) for part in method.modules()), "merged"
    stream = list(batches(whole.data.shards, "test", vocabulary, 4))
    result = embed(method, stream, "cpu")
    again = embed(load_model(whole.model)[0], stream, "cpu")
    assert torch.equal(result.texts.vectors, again.texts.vectors)
    assert ("captions are cut" in capsys.readouterr().err) == (preset.method == "dive")
