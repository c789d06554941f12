"""Scenes and their captions by number: image i depends only on the seed, the split and i."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from manymatch.scenes.compose import compose
from manymatch.scenes.grammar import Sentence, tell
from manymatch.scenes.twins import compose_twins
from manymatch.scenes.world import Scene

CAPTIONS = 5
"""Captions per image."""


@dataclass(frozen=True)
class CaptionedScene:
    """A scene with its captions. `twin` is true for the second scene of a pair of twins."""

    scene: Scene
    captions: tuple[Sentence, ...]
    twin: bool


def pair(seed: int, split: str, number: int, twins: float) -> tuple[CaptionedScene, CaptionedScene]:
    """Return images 2 * `number` and 2 * `number` + 1 of a split.

    They are twins with probability `twins`.
    """
    rng = Random(f"scenes/{seed}/{split}/{number}")
    if rng.random() < twins:
        both = compose_twins(rng)
        first, second = (
            _captioned(scene, contrasts, rng)
            for scene, contrasts in zip(both.scenes, both.contrasts, strict=True)
        )
        return (
            CaptionedScene(both.scenes[0], first, False),
            CaptionedScene(both.scenes[1], second, True),
        )
    one, other = compose(rng)[1], compose(rng)[1]
    return (
        CaptionedScene(one, _captioned(one, [], rng), False),
        CaptionedScene(other, _captioned(other, [], rng), False),
    )


def _captioned(scene: Scene, contrasts: list[Sentence], rng: Random) -> tuple[Sentence, ...]:
    """Return `contrasts` and further captions, `CAPTIONS` different ones in random order."""
    captions = {sentence.text: sentence for sentence in contrasts}
    while len(captions) < CAPTIONS:
        sentence = tell(scene, rng)
        captions.setdefault(sentence.text, sentence)
    return tuple(rng.sample(list(captions.values()), CAPTIONS))
