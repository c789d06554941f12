"""The command `clusters`: the classes of a trained SwAMP by keywords and members
(`results.probes`).

A sample belongs to the class of highest probability `p(y | x)`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from spacy.language import Language

from manymatch.evaluation.samples import thumbnail
from manymatch.experiments.probes.probed_model import ProbedModel
from manymatch.methods.swamp import SwAMP
from manymatch.results.probes import Cluster, ClusterCaption, Clusters
from manymatch.results.retrieval import Counts
from manymatch.scene_graphs.parser import MAX_CHARACTERS, load_model
from manymatch.util.errors import ConfigError

_KINDS = {"NOUN": "nouns", "PROPN": "nouns", "VERB": "verbs"}


class Words(NamedTuple):
    """The lemmas of one caption, without repetition."""

    nouns: list[str]
    verbs: list[str]


def words_of(model: Language, captions: Sequence[str]) -> list[Words]:
    """The words of each caption. Auxiliaries do not count as verbs; names count as nouns."""
    texts = (" ".join(caption[:MAX_CHARACTERS].split()) for caption in captions)
    words = []
    # Lemmas and parts of speech do not depend on the parse, which would be most of the work.
    for doc in model.pipe(texts, disable=["parser"]):
        lemmas: dict[str, dict[str, None]] = {"nouns": {}, "verbs": {}}
        for token in doc:
            if token.pos_ in _KINDS and token.is_alpha:
                lemmas[_KINDS[token.pos_]][token.lemma_.lower()] = None
        words.append(Words(list(lemmas["nouns"]), list(lemmas["verbs"])))
    return words


def most_frequent(captions: Iterable[Iterable[str]], count: int) -> list[tuple[str, int]]:
    """The `count` words that most captions have, with their number of captions. Words of equal
    frequency are in alphabetical order."""
    frequency = Counter(word for words in captions for word in words)
    return sorted(frequency.items(), key=lambda pair: (-pair[1], pair[0]))[:count]


KEYWORDS = 8
"""Nouns, and verbs, kept for each class."""
SHOWN, PICTURES = 12, 4
"""The first classes that get thumbnails, and the number of thumbnails of each."""


def describe_classes(model: Path, shards: Path, target: Path, *, split: str, parser: str) -> None:
    """Write the classes of the SwAMP in `model` on `split` to `target`. The spaCy model `parser`
    finds nouns and verbs.

    Raises:
        ConfigError: the model has no classes, or there is no such spaCy model.
        CheckpointError, DataError: as for `evaluate`.
    """
    probed = ProbedModel.open(model, shards, split)
    method, embedded = probed.trained.method, probed.embedded
    if not isinstance(method, SwAMP) or method.labels is None:
        raise ConfigError(
            f"{model}: the model has no classes. Use a model of the method 'swamp' whose "
            "weight of swapped labels is above 0."
        )
    with torch.inference_mode():
        captions, images = (
            method.labels.classes(side.vectors[:, 0]).argmax(1).cpu()
            for side in (embedded.texts, embedded.images)
        )
    words = words_of(load_model(parser), [caption.text for caption in probed.captions])
    members: dict[int, tuple[list[int], list[int]]] = {}  # rows of captions and images, ascending
    for column, classes in enumerate((captions, images)):
        for row, number in enumerate(classes.tolist()):
            members.setdefault(number, ([], []))[column].append(row)
    # Most captions first, then most images, then by number.
    order = sorted(members, key=lambda n: (*(-len(rows) for rows in members[n]), n))
    agree = captions == images[embedded.image_index]
    Clusters(
        **probed.identity(),
        n_classes=method.labels.settings.n_classes,
        used=Counts(captions=len(captions.unique()), images=len(images.unique())),
        agreement=round(100 * float(agree.double().mean()), 2),
        classes=[
            _cluster(probed, number, members[number], words, PICTURES if place < SHOWN else 0)
            for place, number in enumerate(order)
        ],
    ).write(target)


def _cluster(
    probed: ProbedModel,
    number: int,
    members: tuple[list[int], list[int]],
    words: list[Words],
    pictures: int,
) -> Cluster:
    """The class `number` with thumbnails of its first `pictures` images."""
    rows, images = members
    words = [words[row] for row in rows]
    captions = [probed.captions[row] for row in rows]
    return Cluster(
        number=number,
        nouns=most_frequent((caption.nouns for caption in words), KEYWORDS),
        verbs=most_frequent((caption.verbs for caption in words), KEYWORDS),
        captions=[ClusterCaption(caption_id=entry.id, caption=entry.text) for entry in captions],
        images=[probed.embedded.image_ids[row] for row in images],
        thumbnails={image.image_id: thumbnail(image) for image in probed.images(images[:pictures])},
    )
