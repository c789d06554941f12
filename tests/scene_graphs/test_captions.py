"""Captions and their graphs, in `captions.tsv`: for each rule cases and counterexamples."""

from collections import Counter
from pathlib import Path

import pytest
from written_graphs import table, written

from manymatch.scene_graphs.lexicon import ACTIONS, words
from manymatch.scene_graphs.parser import graphs
from manymatch.scene_graphs.tree import WORD_CLASSES
from manymatch.scene_graphs.verbs import participle_base

TABLE = table(Path(__file__).with_name("captions.tsv"))
LISTS = "a plate with toast, {0} and tea; a room with a bed and {0}; a shop selling {0}s"
NOUNS = words("""
    oven lettuce ketchup salad fork spoon sink shower light rack board sign park bus tree bowl
    train bat rug backpack sheet mirror counter pot pan boat track bottle knife pepper corn
""")


def test_caption(model):
    parsed = map(written, graphs(model, list(TABLE), Counter()))
    assert dict(zip(TABLE, parsed, strict=True)) == TABLE


@pytest.mark.parametrize(("form", "end"), [(str.upper, ""), (str.lower, ".")])
def test_capitals_and_the_full_stop_do_not_count(model, form, end):
    captions = [form(caption.rstrip(" .")) + end for caption in TABLE]
    parsed = map(written, graphs(model, captions, Counter()))
    assert dict(zip(TABLE, parsed, strict=True)) == TABLE


def test_a_participle_is_in_the_caption_or_of_a_verb(model):
    """No noun becomes an attribute that is no word: "ovening"."""
    classes = model.vocab.lookups.get_table(WORD_CLASSES)[WORD_CLASSES]
    texts = [
        *(caption.format(noun) for caption in LISTS.split("; ") for noun in sorted(NOUNS)),
        "A set of plush toy teddy bears sitting in a basket.",
        "A boat next to a blue and raspberry topped cake.",
    ]
    for text, graph in zip(texts, graphs(model, texts, Counter()), strict=True):
        for word in " ".join(sum(graph.attributes, ())).split():
            base = participle_base(word) if word.endswith("ing") else ""
            known = base in ACTIONS or classes.get(base) == "VB"
            assert not base or word in text or known, (text, word)


ODD = (
    *("🐶🐶", "a dog 🐶 runs 🎾", "12345", "3 2 1 0", "a man is holding a ball and " * 60),
    *("not", "never, neither, nor", "close up of", "a dozen", "one of the", "nothing but"),
    *("6 foot", "kite surfing", "grey and white", "in green climbs", "is wind surfing"),
    *("of of of in in in", "café naïve façade — “quoted” text…", "a\u00adb"),
)


def test_an_odd_caption_has_a_graph(model):
    for graph in graphs(model, ODD, Counter()):
        assert graph.objects and all(graph.objects) and all(graph.names)
        assert all(edge.label and edge.subject != edge.object for edge in graph.relations)
