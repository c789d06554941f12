"""Every registered method, small enough for a test, and how a test builds, calls and trains it."""

import torch
from torch import nn

from manymatch.methods import METHODS, build_method, vocabulary_of

WIDTH = 12
"""Of the features of `small_batches`."""


UNTRAINED = {"pretrained"}
"""Methods that do not learn: `tests/pipeline/test_pretrained.py` has their tests."""
NAMES = sorted(
    name
    for name, module in METHODS.items()
    if module.startswith("manymatch.") and name not in UNTRAINED
)
"""The registered methods that learn, without those that tests register."""

CLIP_METHODS = ("swamp_video",)
"""Those that are of videos and text, not of images."""

SMALL_SETS = {
    "size": 16,
    "text": {"word_vectors": "learned", "word_size": 8},
    "sets": {"heads": 2, "attention_size": None},
}

SMALL = {
    "vsepp": {"size": 16, "word_size": 8},
    "vse_infinity": {"size": 16, "text": {"word_vectors": "learned", "word_size": 8}},
    "pcme": {"size": 16, "text": {"word_vectors": "learned", "word_size": 8}},
    "pcmepp": {"size": 16, "text": {"word_vectors": "learned", "word_size": 8}, "mixing": 0.0},
    "msrm": {"size": 16, "text": {"word_vectors": "learned", "word_size": 8}},
    "swamp": {
        "size": 8,
        "text": {"word_size": 8},
        "n_prototypes": 2,
        "n_classes": 6,
        "queue": 16,
    },
    "swamp_video": {
        "size": 8,
        "word_vectors": "learned",
        "word_size": 8,
        "n_classes": 6,
        "queue": 16,
    },
    "pvse": SMALL_SETS,
    "dive": SMALL_SETS,
    "maxmatch": SMALL_SETS,
    "cora": {"size": 16, "heads": 4, "word_vectors": "learned", "word_size": 8, "concept_size": 8},
}
"""Settings that make each method small; a new method has a line here."""

VARIANTS = [
    ("vsepp", {}),
    ("vsepp", {"image_pooling": "gpo", "text_pooling": "gpo"}),
    ("vsepp", {"image_pooling": "max", "text_pooling": "mean", "directions": "concatenate"}),
    ("vse_infinity", {}),
    ("vse_infinity", {"objective": "info_nce", "embedding_dropout": 0.1}),
    ("vse_infinity", {"objective": "sigmoid"}),
    ("pcme", {}),
    ("pcme", {"inference": "samples", "log_variance": -4.0, "hidden": 5}),
    ("pcmepp", {}),
    ("pcmepp", {"text": {"encoder": "bert"}, "pseudo_weight": 0.0, "vib_weight": 0.0}),
    ("msrm", {}),
    ("msrm", {"alpha": None, "inference": "mu"}),
    ("msrm", {"alpha": 0.0, "inference": "hypergraph", "hypergraph_activation": "relu"}),
    ("swamp", {}),
    ("swamp", {"rounds": None, "tolerance": 1e-4, "queue": 0, "heads": 2}),
    ("swamp", {"assignment": "hard", "objective": "info_nce", "embedding_dropout": 0.1}),
    ("swamp_video", {}),
    ("pvse", {}),
    ("pvse", {"sets": {"size": 1}, "contrastive_weight": 1.0}),
    ("dive", {}),
    ("dive", {"image": {"encoder": "linear"}, "sets": {"position_code": True}}),
    ("dive", {"sets": {"module": "decoder", "iterations": 2}, "word_position_code": True}),
    ("dive", {"sets": {"slots": "random", "update": "gru"}}),
    ("maxmatch", {}),
    ("maxmatch", {"sets": {"module": "pie_net", "size": 2}, "image": {"encoder": "raw"}}),
    ("cora", {}),
    ("cora", {"region_attention": False, "edge_form": "code", "warmup_epochs": 0.0}),
    (
        "cora",
        {"last_activation": False, "caption_weight": 1.0, "concept_directions": "concatenate"},
    ),
    ("cora", {"fully_connected": True, "attribute_layers": 2}),
    ("cora", {"graph": "phrases", "concept_encoder": "mean"}),
    ("cora", {"concept_encoder": "bert", "graph_dropout": 0.1}),
    ("msrm", {"text": {"encoder": "bert", "bert": {"tuning": "prefix"}}}),
]
"""What every method's tests run through; a new method has at least one line here."""


def small(name, settings=None):
    """The small settings of a method with `settings` on top; groups are merged."""
    return merged(SMALL[name], settings or {})


def merged(below, above):
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def builder(vocabulary):
    """`build(name, settings=None, seed=0)` gives a small method with fresh weights."""

    def build(name, settings=None, seed=0):
        torch.manual_seed(seed)
        settings_of = small(name, settings)
        words = vocabulary_of(name, settings_of, vocabulary)
        return build_method(name, settings_of, vocabulary=words, feature_width=WIDTH)

    return build


def encode(method, batch):
    return method.encode_images(batch), method.encode_texts(batch)


def losses(method, batch):
    return method.loss(*encode(method, batch), batch)


def train(method, batch, steps=12):
    """Losses of a few full-batch steps, past every warm-up."""
    optimizer = torch.optim.AdamW(method.parameters(), lr=5e-3)
    method.start_epoch(1)
    method.start_step(1.0)
    history = []
    for _ in range(steps):
        loss = torch.stack(list(losses(method, batch).values())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


def settled(method):
    """`method` as in a late epoch, without dropout, so that its losses can be compared."""
    method.start_epoch(9)
    method.start_step(9.0)
    for part in method.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    torch.manual_seed(0)
    return method
