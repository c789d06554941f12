"""Each part is dropped as often as its setting says, and never are all regions, words, objects."""

from collections import Counter
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from manymatch.batch.numbering import NumberedCaption, NumberedGraph
from manymatch.config.preset import Augmentation
from manymatch.shards.prepare import CaptionAugmenter, drop_objects, real_regions

UNK, MASK, ORDINARY = 1, 2, range(3, 50)
GRAPH = NumberedGraph(
    objects=[(10,), (11, 12), (13,)],
    names=[100, 101, 102],
    attributes=[(0, (20,), 200), (1, (21,), 201), (1, (22,), 202)],
    relations=[(0, (30,), 1), (1, (31,), 2)],
)
CAPTION = NumberedCaption("c", tuple(range(3, 23)), GRAPH)


def augmenter(settings, ordinary=ORDINARY, mask=MASK):
    vocabulary = SimpleNamespace(MASK=mask, ordinary=ordinary, UNK=UNK)
    return CaptionAugmenter(Augmentation(**settings), vocabulary)


def augmented(count, **settings):
    augment = augmenter(settings)
    rng = Random(0)
    return [augment(CAPTION, rng) for _ in range(count)]


def test_without_settings_nothing_changes():
    assert augmented(1) == [CAPTION]
    assert real_regions(4, 0.0, Random(0)).tolist() == [True] * 4


def test_regions_are_dropped_at_their_rate():
    rng = Random(0)
    kept = [real_regions(49, 0.35, rng).sum() for _ in range(400)]
    assert abs(np.mean(kept) / 49 - 0.65) < 0.01


def test_hit_words_are_masked_replaced_or_deleted():
    captions = augmented(2000, word_drop=0.2)
    total = 2000 * len(CAPTION.words)
    masked = sum(caption.words.count(MASK) for caption in captions) / total
    deleted = 1 - sum(len(caption.words) for caption in captions) / total
    foreign = sum(word > 22 for caption in captions for word in caption.words) / total
    assert abs(masked - 0.10) < 0.01
    assert abs(deleted - 0.08) < 0.01
    assert abs(foreign - 0.02 * 27 / 47) < 0.003  # a random word can be one of the caption's


def test_all_pieces_of_a_word_are_hit_alike():
    """Of two words, the first has three pieces; one of the two words always stays."""
    first, second = (5, 91, 92), (4,)
    caption = NumberedCaption("c", first + second, GRAPH, (3, 1))
    augment = augmenter({"word_drop": 0.5}, [40])
    seen = {augment(caption, Random(seed)).words for seed in range(400)}
    expected = {first + hit for hit in (second, (MASK,), (40,), ())}
    assert seen == expected | {hit + second for hit in ((MASK,) * 3, (40,) * 3, ())}


def test_caption_drop_makes_words_unknown_and_deletes_a_fixed_share():
    captions = augmented(2000, caption_drop=0.13)
    assert {len(caption.words) for caption in captions} == {18}  # 20 - int(20 * 0.13)
    unknown = sum(caption.words.count(UNK) for caption in captions) / (2000 * 18)
    assert abs(unknown - 0.13) < 0.01
    for caption in captions:
        known = [word for word in caption.words if word != UNK]
        assert known == [word for word in CAPTION.words if word in known]
    first = sum(3 not in caption.words for caption in captions) / 2000
    assert abs(first - (1 - 0.87 * 0.9)) < 0.03


@pytest.mark.parametrize(
    ("drops", "ordinary", "caption", "seen"),
    [
        ({"caption_drop": 0.4}, ORDINARY, (7,), {7, UNK}),
        ({"word_drop": 0.99}, ORDINARY, (7,), {7}),
        ({"word_drop": 0.99}, [5, 9], (7, 8), {7, 8, MASK, 5, 9}),
        ({"word_drop": 0.9}, [], (7, 8), {7, 8, MASK}),
    ],
)
def test_a_word_always_stays_and_random_words_are_ordinary_ones(drops, ordinary, caption, seen):
    augment = augmenter(drops, ordinary)
    one = NumberedCaption("c", caption, GRAPH)
    results = [augment(one, Random(seed)).words for seed in range(300)]
    assert all(results) and set().union(*results) == seen


def test_dropped_object_takes_its_attributes_and_relations_along():
    graphs = [drop_objects(GRAPH, 0.5, Random(seed)) for seed in range(60)]
    without_first = next(graph for graph in graphs if graph.names == [101, 102])
    assert without_first.objects == [(11, 12), (13,)]
    assert without_first.attributes == [(0, (21,), 201), (0, (22,), 202)]
    assert without_first.relations == [(0, (31,), 1)]
    assert all(graph.objects for graph in graphs)
    assert Counter(len(graph.objects) for graph in graphs).keys() == {1, 2, 3}


@pytest.mark.parametrize("name", ["object_drop", "attribute_drop", "relation_drop"])
def test_the_graph_before_the_drop_of_entities_is_kept(name):
    (caption,) = augmented(1, phrase_word_mask=0.5, **{name: 0.9})
    assert caption.graph.undropped == (None if name == "relation_drop" else GRAPH)


def test_words_of_phrases_are_masked_or_deleted_and_one_is_left():
    captions = augmented(4000, phrase_word_mask=0.1, phrase_word_delete=0.3)
    pairs = [caption.graph.objects[1] for caption in captions]
    rates = {phrase: count / 4000 for phrase, count in Counter(pairs).items()}
    kept, masked, deleted = 0.6, 0.1, 0.3
    expected = {
        (11, 12): kept * kept,
        (11, MASK): kept * masked,
        (MASK, 12): masked * kept,
        (MASK, MASK): masked * masked,
        (MASK,): 2 * masked * deleted,
        (11,): kept * deleted + deleted * deleted / 2,
        (12,): deleted * kept + deleted * deleted / 2,
    }
    assert rates.keys() == expected.keys()
    assert all(abs(rates[phrase] - rate) < 0.02 for phrase, rate in expected.items())
    singles = Counter(caption.graph.objects[0] for caption in captions)
    assert singles.keys() == {(10,), (MASK,)}
    assert abs(singles[(MASK,)] / 4000 - masked) < 0.02
    assert all(caption.graph.names == GRAPH.names for caption in captions)
