"""Convert a stored image to an item of a batch: draw, number and augment its captions."""

import itertools
from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np

from manymatch.batch.collate import ImageItem
from manymatch.batch.numbering import NumberedCaption, NumberedGraph, Numbering, Phrase
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Augmentation
from manymatch.shards.sample import Sample

_numbering = lru_cache(maxsize=1)(Numbering)
"""The cache keeps the numbered phrases of an epoch for the next epoch."""


class Preparation:
    """Draws `captions_per_image` captions (None: all) and augments the image and the captions.

    All draws of an image come from `generator_for(key)`: they depend only on (seed, epoch, image).
    """

    def __init__(
        self,
        vocabulary: AnyVocabulary,
        captions_per_image: int | None,
        augmentation: Augmentation | None,
        shuffle: tuple[int, int] | None,
    ) -> None:
        self._numbering = _numbering(vocabulary)
        self._captions_per_image = captions_per_image
        self._augmentation = augmentation or Augmentation()
        self._augment = CaptionAugmenter(self._augmentation, vocabulary)
        self._shuffle = shuffle

    def generator_for(self, key: str) -> Random:
        """The random generator for the draws of the image with this key."""
        return Random(f"{self._shuffle} {key}")

    def __call__(self, sample: Sample, rng: Random) -> ImageItem:
        """The item of an image with drawn captions."""
        whole_words = bool(self._augmentation.word_drop)
        captions = [self._numbering.caption(entry, whole_words) for entry in sample.captions]
        return ImageItem(
            image_id=sample.image_id,
            features=sample.features,
            real=real_regions(len(sample.features), self._augmentation.region_drop, rng),
            boxes=sample.boxes,
            captions=[self._augment(caption, rng) for caption in captions],
        )

    def draw(self, entries: Sequence[Any], rng: Random) -> Sequence[Any]:
        """Draw captions from all captions of an image."""
        count = self._captions_per_image
        if count is None or count >= len(entries):
            return entries
        return [entries[number] for number in sorted(rng.sample(range(len(entries)), count))]


MASKED, REPLACED = 0.5, 0.1
"""Shares of the selected words that become the mask or a random word (VSE-infinity, DivE). The
other selected words are deleted."""


def keep_flags(count: int, probability: float, rng: Random) -> list[bool]:
    """A boolean mask with `count` entries; at least one entry is true."""
    flags = [rng.random() >= probability for _ in range(count)]
    if count and not any(flags):
        flags[rng.randrange(count)] = True
    return flags


def real_regions(count: int, probability: float, rng: Random) -> np.ndarray:
    """The mask (n,) of the regions that are not dropped; at least one stays.

    A dropped region keeps its row, because the row determines the position of the region.
    """
    return (
        np.array(keep_flags(count, probability, rng)) if probability else np.ones(count, dtype=bool)
    )


class CaptionAugmenter:
    """Drops words, objects, attributes and relations; masks and deletes words of phrases. Without a
    mask in the vocabulary, masked words are deleted. Random words are ordinary ones."""

    def __init__(self, settings: Augmentation, vocabulary: AnyVocabulary) -> None:
        self._settings = settings
        self._changes_captions = settings.changes_captions
        self._drops_entities = bool(settings.object_drop or settings.attribute_drop)
        self._mask = () if vocabulary.MASK is None else (vocabulary.MASK,)
        self._ordinary, self._unknown = vocabulary.ordinary or self._mask, vocabulary.UNK

    def __call__(self, caption: NumberedCaption, rng: Random) -> NumberedCaption:
        if not self._changes_captions:
            return caption
        words = self._drop_caption_words(self._drop_words(caption, rng), rng)
        graph = drop_objects(caption.graph, self._settings.object_drop, rng)
        graph = NumberedGraph(
            graph.objects,
            graph.names,
            _drop(graph.attributes, self._settings.attribute_drop, rng),
            _drop(graph.relations, self._settings.relation_drop, rng),
            caption.graph if self._drops_entities else None,
        )
        return NumberedCaption(caption.id, words, self._augment_phrases(graph, rng))

    def _drop_words(self, caption: NumberedCaption, rng: Random) -> Phrase:
        words = caption.words
        if not self._settings.word_drop:
            return words
        ends = itertools.accumulate(caption.sizes or (1,) * len(words), initial=0)
        whole = [words[start:stop] for start, stop in itertools.pairwise(ends)]
        flags = keep_flags(len(whole), self._settings.word_drop, rng)
        parts = [
            word if stays else self._replacement(len(word), rng)
            for word, stays in zip(whole, flags, strict=True)
        ]
        return tuple(itertools.chain.from_iterable(parts))

    def _replacement(self, pieces: int, rng: Random) -> Phrase:
        """The replacement of a selected word: for each of its pieces a mask or a random piece, or
        nothing."""
        fate = rng.random()
        if fate < MASKED:
            return self._mask * pieces
        if fate < MASKED + REPLACED:
            return tuple(rng.choice(self._ordinary) for _ in range(pieces))
        return ()

    def _drop_caption_words(self, words: Phrase, rng: Random) -> Phrase:
        """The caption drop of PCME's released code: unknown words, then fewer words."""
        probability = self._settings.caption_drop
        if not probability:
            return words
        remaining = [self._unknown if rng.random() < probability else word for word in words]
        for _ in range(int(len(words) * probability)):
            del remaining[rng.randrange(len(remaining))]
        return tuple(remaining)

    def _augment_phrases(self, graph: NumberedGraph, rng: Random) -> NumberedGraph:
        """Mask and delete words of all phrases of a caption. Names and name ids stay the same."""
        if not (self._settings.phrase_word_mask or self._settings.phrase_word_delete):
            return graph
        return NumberedGraph(
            objects=[self._augment_phrase(phrase, rng) for phrase in graph.objects],
            names=graph.names,
            attributes=[
                (row, self._augment_phrase(phrase, rng), name)
                for row, phrase, name in graph.attributes
            ],
            relations=[
                (row, self._augment_phrase(phrase, rng), other)
                for row, phrase, other in graph.relations
            ],
            undropped=graph.undropped,
        )

    def _augment_phrase(self, phrase: Phrase, rng: Random) -> Phrase:
        """The phrase with every word kept, masked or deleted. At least one word is left."""
        masked = self._settings.phrase_word_mask
        deleted = masked + self._settings.phrase_word_delete
        draws = [(word, rng.random()) for word in phrase]
        left = [
            self._mask if draw < masked else (word,)
            for word, draw in draws
            if not masked <= draw < deleted
        ]
        return tuple(itertools.chain.from_iterable(left)) or (rng.choice(phrase),)


def _drop(items: list, probability: float, rng: Random) -> list:
    """`items` without the dropped items. The result may be empty."""
    return [item for item in items if rng.random() >= probability] if probability else items


def drop_objects(graph: NumberedGraph, probability: float, rng: Random) -> NumberedGraph:
    """The graph without the dropped objects, their attributes and their relations."""
    if not probability:
        return graph
    flags = keep_flags(len(graph.objects), probability, rng)
    rows = [*itertools.accumulate(flags, initial=0)]  # new number of each object that stays
    return NumberedGraph(
        objects=list(itertools.compress(graph.objects, flags)),
        names=list(itertools.compress(graph.names, flags)),
        attributes=[
            (rows[row], phrase, name) for row, phrase, name in graph.attributes if flags[row]
        ],
        relations=[
            (rows[subject], phrase, rows[other])
            for subject, phrase, other in graph.relations
            if flags[subject] and flags[other]
        ],
    )
