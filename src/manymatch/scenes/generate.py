"""Images and their captions by number: image i depends on the seed and i alone."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from manymatch.scenes.compose import compose
from manymatch.scenes.grammar import Sentence, tell
from manymatch.scenes.twins import compose_twins
from manymatch.scenes.world import Scene

CAPTIONS = 5
"""Captions an image."""


@dataclass(frozen=True)
class Picture:
    """A scene with its captions; `twin` if it is the second of a pair of twins."""

    scene: Scene
    captions: tuple[Sentence, ...]
    twin: bool


def pair(seed: int, split: str, number: int, twins: float) -> tuple[Picture, Picture]:
    """Images 2 * `number` and 2 * `number` + 1 of a split; a share of `twins` are twins."""
    rng = Random(f"scenes/{seed}/{split}/{number}")
    if rng.random() < twins:
        both = compose_twins(rng)
        first, second = (
            _captioned(scene, contrasts, rng)
            for scene, contrasts in zip(both.scenes, both.contrasts, strict=True)
        )
        return Picture(both.scenes[0], first, False), Picture(both.scenes[1], second, True)
    one, other = compose(rng)[1], compose(rng)[1]
    return (
        Picture(one, _captioned(one, [], rng), False),
        Picture(other, _captioned(other, [], rng), False),
    )


def _captioned(scene: Scene, given: list[Sentence], rng: Random) -> tuple[Sentence, ...]:
    """`given` and further captions up to `CAPTIONS`, all different, in random order."""
    captions = {sentence.text: sentence for sentence in given}
    while len(captions) < CAPTIONS:
        sentence = tell(scene, rng)
        captions.setdefault(sentence.text, sentence)
    return tuple(rng.sample(list(captions.values()), CAPTIONS))
