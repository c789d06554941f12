"""Captions: draw a kind of sentence and write it about a scene.

The docstring of the package says what the scene graph of a caption's text is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from manymatch.batch.scene_graph import SceneGraph
from manymatch.scenes import sentences
from manymatch.scenes.forms import Form
from manymatch.scenes.phrases import Draft, Focus, Inapplicable
from manymatch.scenes.world import Scene

Frame = Callable[[Draft], str]
"""A kind of sentence."""

FRAMES: dict[Frame, float] = {
    sentences.clause: 4.0,
    sentences.fragment: 3.0,
    sentences.passive: 1.5,
    sentences.existential: 1.5,
    sentences.presence: 1.0,
    sentences.inversion: 1.0,
    sentences.relative_subject: 1.0,
    sentences.relative_object: 1.5,
    sentences.gap: 0.5,
    sentences.state_clause: 1.0,
    sentences.predicative: 1.0,
    sentences.possession: 0.5,
    sentences.joint_subjects: 1.0,
    sentences.joint_predicates: 1.0,
    sentences.two_clauses: 1.2,
    sentences.count: 1.2,
    sentences.listing: 0.8,
}
"""The weight of each frame in the draw. The order is part of the data set."""


@dataclass(frozen=True)
class Sentence:
    """A caption with its logical form, the scene graph of its text, and its frame."""

    text: str
    form: Form
    graph: SceneGraph
    frame: Frame


def tell(scene: Scene, rng: Random, focus: Focus = Focus()) -> Sentence:  # noqa: B008
    """Return one true caption of `scene`, preferably about `focus`."""
    frames, weights = list(FRAMES), list(FRAMES.values())
    while True:
        frame = rng.choices(frames, weights)[0]
        draft = Draft(scene, rng, focus)
        try:
            text = frame(draft)
        except Inapplicable:
            continue
        text = text[0].upper() + text[1:] + ("." if rng.random() < 0.9 else "")
        return Sentence(text, draft.form, draft.graph(), frame)
