"""Text models that cannot be used are one line, and so are damaged pieces of a trained model."""

import json
import os
import shutil

import pytest
import torch
import transformers
from hub_models import cached, edit
from hub_texts import built

from manymatch.batch.wordpieces import load_vocabulary
from manymatch.networks.backbones.learning import layer_stack
from manymatch.networks.encoders.hub_text import HubTextEncoder, HubTextSettings
from manymatch.util.errors import ConfigError, DataError

CONFIG, WORDS = "config.json", "tokenizer.json"
FAULTS = {
    "no tokeniser": (lambda f: (f / WORDS).unlink(), {}, "tokenizer.json"),
    "no JSON": (lambda f: (f / WORDS).write_text("{"), {}, "no tokeniser"),
    "no configuration": (lambda f: (f / CONFIG).unlink(), {}, "config.json: no such file"),
    "another family": (edit(CONFIG, model_type="mpnet"), {}, "lack parts"),
    "a model of pictures": (edit(CONFIG, model_type="vit"), {}, "no model of texts"),
    "an encoder-decoder": (edit(CONFIG, model_type="bart"), {}, "no model of texts alone"),
    "other pieces": (edit(CONFIG, vocab_size=20), {}, ""),
    "a pipe": (lambda f: ((f / WORDS).unlink(), os.mkfifo(f / WORDS)), {}, "no regular file"),
    "huge": (edit(CONFIG, intermediate_size=10**9), {}, "parameters"),
    "layers": (None, {"train": "last 9"}, "the model has 3"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_cannot_be_used_is_one_line(fault, folders, tmp_path):
    damage, given, words = FAULTS[fault]
    folder = shutil.copytree(folders("roberta"), tmp_path / "model")
    if damage:
        damage(folder)
    with pytest.raises(ConfigError) as caught:
        built(folder, **given)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("network", {"model_type": "own"}, "own"),
        ("network", {"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ("network", {"vocab_size": 20}, "20 pieces cannot read"),
        ("network", {"hidden_size": "x"}, "no network of texts"),
        ("special", {"first": [10**6]}, "special piece is missing"),
        ("special", {"first": [-1]}, "greater than or equal"),
        ("special", {"length": 1000}, "pieces cannot read 1,000"),
        ("pieces", {"model": None}, "not a tokeniser"),
    ],
)
def test_the_pieces_of_a_trained_model_from_elsewhere(part, change, words, folders, tmp_path):
    path = tmp_path / "vocabulary.json"
    HubTextSettings(model=str(folders("roberta"))).vocabulary().save(path)
    content = json.loads(path.read_text())
    content[part] |= change
    path.write_text(json.dumps(content))
    with pytest.raises((ConfigError, DataError)) as caught:
        HubTextEncoder(HubTextSettings(model="x"), load_vocabulary(path))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_the_code_of_a_tokeniser_never_runs(folders, tmp_path):
    folder = shutil.copytree(folders("roberta"), tmp_path / "model")
    edit("tokenizer_config.json", tokenizer_class="X", auto_map={"AutoTokenizer": [None, "own.X"]})(
        folder
    )
    (folder / "own.py").write_text(
        f"import pathlib; pathlib.Path({str(tmp_path)!r}, 'ran').touch()"
    )
    assert built(folder).ends == 2
    assert not (tmp_path / "ran").exists()


def test_lists_that_hold_parts_of_layers_are_no_layers():
    sizes = {"vocab_size": 16, "emb_dim": 8, "n_layers": 2, "n_heads": 2}
    network = transformers.AutoModel.from_config(transformers.XLMConfig(**sizes))
    with pytest.raises(ConfigError, match="no list of whole layers"):
        layer_stack(network)


def test_a_copy_of_the_hub_on_this_machine_needs_no_network(folders, tmp_path, monkeypatch):
    cached(tmp_path / "hub", "owner/text", folders("bert"), monkeypatch)
    words, mask = torch.tensor([[7, 8, 9]]), torch.ones(1, 3, dtype=torch.bool)
    copy, here = (built(name)(words, mask).states for name in ("owner/text", folders("bert")))
    assert torch.equal(copy, here)
