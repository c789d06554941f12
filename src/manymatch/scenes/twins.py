"""Pairs of scenes with their captions, and twins: pairs that differ in one binding.

A twin results from exchanging one property between two objects: colour, size or state, or the
objects themselves (so that the dog chases the man). Captions of both scenes then have the same
words with different bindings: "a red dog left of a blue car", "a blue dog left of a red car".
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from manymatch.batch.scene_graph import SceneGraph
from manymatch.scenes import sentences
from manymatch.scenes.compose import allowed, compose
from manymatch.scenes.forms import Form, Pattern
from manymatch.scenes.layout import lay_out
from manymatch.scenes.phrases import Draft, Focus, Inapplicable
from manymatch.scenes.world import Blueprint, Scene, Tie

CONTRASTS = 3
"""Number of captions of a twin that are false of its sibling, which has captions of equal words."""
_SWAPS = 5
"""Exchanges to try before drawing another scene."""
_TRIES = 40
_WHOLE = "kind"
_WEIGHTS = {_WHOLE: 24.0, "colour": 1.0, "size": 0.6, "state": 12.0}
"""Weight of each exchange in the order of trials."""
_ACTING = 6.0


@dataclass(frozen=True)
class Twins:
    """Two scenes, and for each scene the captions that are false of the other scene."""

    scenes: tuple[Scene, Scene]
    contrasts: "tuple[list[Sentence], list[Sentence]]"


def compose_twins(rng: Random) -> Twins:
    """Return two scenes that differ in one binding, with `CONTRASTS` parallel captions each."""
    while True:
        blueprint, scene = compose(rng)
        for i, j, attribute in _swaps(blueprint, rng)[:_SWAPS]:
            other = exchange(blueprint, i, j, attribute)
            twin = lay_out(other) if allowed(other) else None
            if twin is None:
                continue
            focus = Focus((i, j), None if attribute == _WHOLE else attribute)
            pairs = _contrasts((scene, twin), focus, rng)
            if len(pairs) == CONTRASTS:
                return Twins((scene, twin), ([a for a, _ in pairs], [b for _, b in pairs]))


def exchange(blueprint: Blueprint, i: int, j: int, attribute: str) -> Blueprint:
    """Exchange `attribute` of objects i and j; `kind` exchanges all but position and direction."""
    a, b = blueprint.specs[i], blueprint.specs[j]
    if attribute != _WHOLE:
        to_a, to_b = {attribute: getattr(b, attribute)}, {attribute: getattr(a, attribute)}
        return blueprint.replace_spec(i, replace(a, **to_a)).replace_spec(j, replace(b, **to_b))
    swapped = blueprint.replace_spec(i, replace(b, facing=a.facing))
    swapped = swapped.replace_spec(j, replace(a, facing=b.facing))
    # Clothes and hats stay with their wearers.
    wearer = {i: j, j: i}
    ties = tuple(
        Tie(wearer.get(t.subject, t.subject), *t[1:]) if t.relation == "wear" else t
        for t in blueprint.ties
    )
    return replace(swapped, ties=ties)


def _swaps(blueprint: Blueprint, rng: Random) -> list[tuple[int, int, str]]:
    """Return all possible exchanges (i, j, attribute) in random order."""
    swaps = [
        (i, j, attribute)
        for i, j in combinations(range(len(blueprint.specs)), 2)
        for attribute in _WEIGHTS
        for values in [{getattr(blueprint.specs[k], attribute) for k in (i, j)}]
        if len(values) == 2 and None not in values
    ]
    of_attribute = Counter(attribute for *_, attribute in swaps)
    acting = [{tie.subject, tie.object} for tie in blueprint.ties]

    def weight(i: int, j: int, attribute: str) -> float:
        """The weight of an exchange; of whole objects it is larger if one acts on the other."""
        ease = _ACTING if attribute == _WHOLE and {i, j} in acting else 1.0
        return _WEIGHTS[attribute] * ease

    # Weighted order without replacement (Efraimidis and Spirakis): each attribute
    # gets its share.
    keys = {swap: rng.random() ** (of_attribute[swap[2]] / weight(*swap)) for swap in swaps}
    return sorted(swaps, key=keys.__getitem__, reverse=True)


def _contrasts(
    scenes: tuple[Scene, Scene], focus: Focus, rng: Random
) -> "list[tuple[Sentence, Sentence]]":
    """Return up to `CONTRASTS` pairs of captions with equal words, each true only of its scene."""
    pairs: dict[str, tuple[Sentence, Sentence]] = {}
    for _ in range(_TRIES):
        # Equal draws give the same sentence with the bindings of each scene.
        seed = rng.getrandbits(64)
        first, second = (tell(scene, Random(seed), focus) for scene in scenes)
        if _bag(first) == _bag(second) and (
            not holds(first, scenes[1]) and not holds(second, scenes[0])
        ):
            pairs.setdefault(first.text, (first, second))
            if len(pairs) == CONTRASTS:
                break
    return list(pairs.values())


def _bag(sentence: "Sentence") -> Counter[str]:
    """Return the words of a caption; `an` counts as `a`."""
    words = sentence.text.lower().replace(",", " ").replace(".", " ").split()
    return Counter("a" if word == "an" else word for word in words)


def holds(sentence: "Sentence", scene: Scene) -> bool:
    """Return whether a caption is true of a scene."""
    graph = scene.graph()
    relations = frozenset(scene.relations)
    return Pattern(sentence.form).true_of(graph["background"], graph["objects"], relations)


CAPTIONS = 5
"""Captions per image."""


@dataclass(frozen=True)
class CaptionedScene:
    """A scene with its captions. `twin` is true for the second scene of a pair of twins."""

    scene: Scene
    captions: "tuple[Sentence, ...]"
    twin: bool


def pair(seed: int, split: str, number: int, twins: float) -> tuple[CaptionedScene, CaptionedScene]:
    """Return images 2 * `number` and 2 * `number` + 1 of a split, twins with probability `twins`.

    Image i depends only on `seed`, `split` and i.
    """
    rng = Random(f"scenes/{seed}/{split}/{number}")
    if twin := rng.random() < twins:
        both = compose_twins(rng)
        scenes, contrasts = both.scenes, both.contrasts
    else:
        scenes, contrasts = (compose(rng)[1], compose(rng)[1]), ([], [])
    first, second = (
        CaptionedScene(scene, _captioned(scene, own, rng), again)
        for scene, own, again in zip(scenes, contrasts, (False, twin), strict=True)
    )
    return first, second


def _captioned(scene: Scene, contrasts: "list[Sentence]", rng: Random) -> "tuple[Sentence, ...]":
    """Return `contrasts` and further captions, `CAPTIONS` different ones in random order."""
    captions = {sentence.text: sentence for sentence in contrasts}
    while len(captions) < CAPTIONS:
        sentence = tell(scene, rng)
        captions.setdefault(sentence.text, sentence)
    return tuple(rng.sample(list(captions.values()), CAPTIONS))


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
