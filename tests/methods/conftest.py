"""A made-up batch: images whose features follow their captions, so that something can be learnt."""

import numpy as np
import pytest
from small_methods import builder
from tiny_bert import make_bert

from manymatch.batch.collate import collate, whole_item
from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.batch.scene_graph import Relation, SceneGraph
from manymatch.batch.vocabulary import Vocabulary

KINDS = ("dog", "cat", "bird", "boat")
COLOURS = ("red", "blue", "green")
WIDTH = 12


@pytest.fixture(scope="session")
def vocabulary():
    return Vocabulary([*Vocabulary.SPECIAL, *KINDS, *COLOURS, "a", "beside", "two", "big"])


@pytest.fixture(scope="session")
def bert(vocabulary, tmp_path_factory):
    """A tiny BERT whose wordpieces have the ids of the words, so that it can read every batch."""
    words = vocabulary.words[len(Vocabulary.SPECIAL) :]
    pieces = ["[PAD]", "[UNK]", "[MASK]", *words, "[CLS]", "[SEP]"]
    return make_bert(tmp_path_factory.mktemp("bert"), pieces)


@pytest.fixture(autouse=True)
def only_tiny_berts(bert, monkeypatch):
    """Whichever BERT a preset names, it is the tiny one."""
    monkeypatch.setattr("manymatch.networks.encoders.bert.bert_folder", lambda weights: bert)


@pytest.fixture(scope="session")
def build(vocabulary):
    return builder(vocabulary)


@pytest.fixture(scope="session")
def make_batch(vocabulary):
    """A batch of the numbered images; image i is the same in every batch."""
    numbering = Numbering(vocabulary)
    patterns = np.random.default_rng(0).normal(size=(len(KINDS), len(COLOURS), WIDTH))

    def item(i):
        rng = np.random.default_rng((1, i))
        kind, colour, other = i % len(KINDS), i % len(COLOURS), (i + 1) % len(KINDS)
        noise = rng.normal(size=(2 + i % 4, WIDTH)) / 10
        features = (noise + patterns[kind, colour] + patterns[other, colour]).astype(np.float16)
        captions = [numbering.caption(entry) for entry in _captions(i, kind, colour, other)]
        corners = np.sort(rng.random((len(features), 2, 2), dtype=np.float32), axis=1)
        return whole_item(f"image{i}", features, corners.reshape(-1, 4), captions)

    return lambda images: collate([item(i) for i in images]).to("cpu")


def _captions(i, kind, colour, other):
    """Two or three captions; one of them has neither attribute nor relation."""
    first, second, shade = KINDS[kind], KINDS[other], COLOURS[colour]
    pair = SceneGraph(
        (first, second), (first, second), ((shade,), ("big", shade)), (Relation(0, "beside", 1),)
    )
    alone = SceneGraph((first,), (first,), ((),), ())
    texts = [
        (f"a {shade} {first} beside a big {shade} {second}", pair),
        (f"a {first}", alone),
        (f"two {shade} {first}", SceneGraph((first,), (first,), (("two", shade),), ())),
    ]
    kept = texts[: 2 + i % 2]
    return [CaptionEntry(f"image{i}#{k}", text, graph) for k, (text, graph) in enumerate(kept)]
