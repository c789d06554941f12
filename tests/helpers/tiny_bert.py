"""A BERT of a few thousand random weights, in a folder as the hub has them."""

import json

import torch
from safetensors.torch import save_file

from manymatch.batch.wordpieces import NETWORK

UNUSED = ["[unused0]", "[unused1]"]
SPECIAL = ["[PAD]", *UNUSED, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ("a", "the", "two", "big", "red", "blue", "green", "dog", "cat", "bird", "boat", "beside")
ENDINGS = ("##s", "##ing", "##o", "##g")
PIECES = list(dict.fromkeys([*SPECIAL, *WORDS, *"abcdefghijklmnopqrstuvwxyz'-", *ENDINGS]))


def make_bert(folder, pieces=PIECES, **config):
    """Write `config.json`, `vocab.txt` and `model.safetensors` into `folder`, which it returns."""
    from transformers import BertConfig, BertModel  # takes half a second

    sizes = {
        "vocab_size": len(pieces),
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 24,
        "max_position_embeddings": 40,
        "initializer_range": 0.2,  # large, so that the network's parts show in what it gives
    }
    bert = BertConfig(**(sizes | config))
    torch.manual_seed(0)
    state = BertModel(bert, add_pooling_layer=False).state_dict()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {key: value.contiguous() for key, value in state.items()}, folder / "model.safetensors"
    )
    values = {key: getattr(bert, key) for key in NETWORK}
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **values}))
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return folder
