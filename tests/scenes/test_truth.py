"""Truth of captions, compared with brute force over all mappings of objects."""

from itertools import permutations

import pytest

from manymatch.scenes.forms import Form, FormObject, Gallery, Pattern, true_pairs
from manymatch.scenes.kinds import KINDS
from manymatch.scenes.twins import pair

DOG = {"kind": "dog", "colour": "red", "size": "small", "state": "running"}
CAT = {"kind": "cat", "colour": "blue", "size": None, "state": "running"}
TABLE = {"kind": "table", "colour": "red", "size": "large", "state": None}


def graph(*objects, relations=(), background="park"):
    return {"background": background, "objects": list(objects), "relations": list(relations)}


def true(form, scene):
    relations = frozenset(map(tuple, scene["relations"]))
    return Pattern(form).true_of(scene["background"], scene["objects"], relations)


def true_by_brute_force(form, scene):
    """The definition of truth: some injective mapping satisfies every clause."""
    if form.background and form.background != scene["background"]:
        return False
    nodes = [(k, copy) for k, obj in enumerate(form.objects) for copy in range(obj.count)]
    relations = {tuple(relation) for relation in scene["relations"]}
    for image in permutations(range(len(scene["objects"])), len(nodes)):
        mapping = dict(zip(nodes, image, strict=True))
        if all(_is(form.objects[k], scene["objects"][m]) for (k, _), m in mapping.items()) and all(
            (mapping[a], name, mapping[b]) in relations
            for s, name, o in form.relations
            for a in nodes
            for b in nodes
            if a[0] == s and b[0] == o
        ):
            return True
    return False


def _is(wanted, thing):
    nouns = (thing["kind"], *KINDS[thing["kind"]].hypernyms)
    message = {"colour": wanted.colour, "size": wanted.size, "state": wanted.state}
    return wanted.noun in nouns and all(
        value is None or value == thing[name] for name, value in message.items()
    )


SCENE = graph(DOG, CAT, TABLE, relations=[(0, "chase", 1), (1, "next to", 2), (2, "next to", 1)])


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (Form(None, [FormObject("animal")]), True),
        (Form(None, [FormObject("horse")]), False),
        (Form("beach", [FormObject("dog")]), False),
        (Form(None, [FormObject("dog", "red", "small", "running")]), True),
        (Form(None, [FormObject("cat", "red")]), False),
        (Form(None, [FormObject("animal", count=3)]), False),
        (Form(None, [FormObject("animal", state="running", count=2)]), True),
        (Form(None, [FormObject("dog"), FormObject("dog")]), False),
        (Form(None, [FormObject("dog"), FormObject("cat")], [(1, "chase", 0)]), False),
        (Form(None, [FormObject("animal"), FormObject("animal")], [(0, "chase", 1)]), True),
        (
            Form(None, [FormObject("animal", count=2), FormObject("table")], [(0, "next to", 1)]),
            False,
        ),
    ],
)
def test_a_form_is_true_exactly_if_it_embeds(form, expected):
    assert true(form, SCENE) is expected
    assert true_by_brute_force(form, SCENE) is expected


@pytest.fixture(scope="module")
def pictures():
    return [picture for number in range(30) for picture in pair(7, "test", number, 0.5)]


def test_own_captions_are_true():
    for picture in (picture for n in range(100) for picture in pair(8, "train", n, 0.3)):
        scene = picture.scene.graph()
        forms = [sentence.form for sentence in picture.captions]
        assert len(forms) == 5 and all(true(form, scene) for form in forms)
        assert [Form.from_dict(form.to_dict()) for form in forms] == forms


def test_search_equals_brute_force_on_all_pairs(pictures):
    small = [p for p in pictures if len(p.scene.things) <= 6][:16]
    for scene in (picture.scene.graph() for picture in small):
        for form in (sentence.form for picture in small for sentence in picture.captions):
            assert true(form, scene) == true_by_brute_force(form, scene)


def test_gallery_finds_what_trying_every_pair_finds(pictures):
    scenes = [picture.scene.graph() for picture in pictures]
    forms = [sentence.form for picture in pictures for sentence in picture.captions]
    result = set(true_pairs(Gallery(scenes), forms))
    expected = {
        (row, number)
        for number, form in enumerate(forms)
        for row, scene in enumerate(scenes)
        if true(form, scene)
    }
    assert result == expected
    assert len(result) > 1.2 * len(forms)  # many captions are true of other images too
