"""Sentences and their graphs, for each rule.

A graph is written as its objects with their attributes in brackets, then its relations:
"man; hat [blue] | man wear hat". Objects are named by their lemmatised names.
"""

from __future__ import annotations

import random

import pytest
from spacy.language import Language

from manymatch.scene_graphs.graph import SceneGraph
from manymatch.scene_graphs.rules import scene_graph

OBJECTS = {
    "A man.": "man",
    "A construction worker carries a ladder.": (
        "construction worker; ladder | construction worker carry ladder"
    ),
    "A pair of shoes lies on the floor.": ("pair of shoes; floor | pair of shoes lie on floor"),
    "A pair of red shoes.": "pair of shoes [red]",
    "A group of people walk down the street.": (
        "group of people; street | group of people walk down street"
    ),
    "A path near a bunch of trees and a house.": (
        "path; bunch of trees; house | path near bunch of trees; path near house"
    ),
    "A couple of kids play with a ball.": "kid; ball | kid play with ball",
    "A man in a t-shirt.": "man; t-shirt | man in t-shirt",
    "The small building near a painting.": ("building [small]; painting | building near painting"),
    "A café owner serves tea.": "café owner; tea | café owner serve tea",
    "A MAN RIDES A HORSE.": "man; horse | man ride horse",
}

ATTRIBUTES = {
    "Three large brown dogs.": "dog [three, large, brown]",
    "A salmon-colored house.": "house [salmon-colored]",
    "A black and white cat.": "cat [black, white]",
    "A very large tree.": "tree [very large]",
    "The dog is brown and very wet.": "dog [brown, very wet]",
    "A dog that is running.": "dog [running]",
    "A dog runs.": "dog [running]",
    "A boy runs and jumps.": "boy [running, jumping]",
    "A standing horse near a swimming pool.": (
        "horse [standing]; swimming pool | horse near swimming pool"
    ),
    "The car is parked.": "car [parked]",
    "A man with no hair.": "man; hair [no] | man with hair",
    "A boy wears an orange shirt.": "boy; shirt [orange] | boy wear shirt",
    "There are two carts.": "cart [two]",
}

VERBS = {
    "A man holds a ball.": "man; ball | man hold ball",
    "A man is holding a ball.": "man; ball | man hold ball",
    "A guy is riding a horse.": "guy; horse | guy ride horse",
    "A child picks up a toy.": "child; toy | child pick up toy",
    "A dog is jumping over a log.": "dog; log | dog jump over log",
    "A bird flying over a large house.": "bird; house [large] | bird fly over house",
    "A man dressed in a suit.": "man; suit | man dressed in suit",
    "A car parked beside a tree.": "car; tree | car parked beside tree",
    "A man is trying to catch a fish.": "man; fish | man catch fish",
    "A girl bikes on a path.": "girl; path | girl bike on path",
    "A dog chases a ball while carrying a stick.": (
        "dog; ball; stick | dog chase ball; dog carry stick"
    ),
    "A woman rides a bike on a street.": ("woman; bike; street | woman ride bike; woman on street"),
    "A boy holds a stick in his hand.": "boy; stick; hand | boy hold stick; stick in hand",
    "In the park, a boy runs after a woman.": (
        "park; boy; woman | boy in park; boy run after woman"
    ),
    "A man sings with a crowd watching.": "man; crowd [watching] | man sing with crowd",
    "Man with sunglasses singing.": "man [singing]; sunglass | man with sunglass",
    "A young girl in a black shirt and a blue helmet is sitting on a quad.": (
        "girl [young]; shirt [black]; helmet [blue]; quad"
        " | girl in shirt; girl in helmet; girl sit on quad"
    ),
    "Two men pointing guns at another man.": (
        "man [two]; gun; man | man point gun; man point at man"
    ),
    "A man in a red shirt holding a sign.": (
        "man; shirt [red]; sign | man in shirt; man hold sign"
    ),
}

PASSIVE = {
    "A ball held by a woman is red.": "ball [red]; woman | woman hold ball",
    "The ball is being kicked by two boys.": "ball; boy [two] | boy kick ball",
    "A gray cart dragged by a horse.": "cart [gray]; horse | horse drag cart",
    "A car parked by a house.": "car; house | car parked by house",
    "A ball is being kicked by a lady in a grey dress.": (
        "ball; lady; dress [grey] | lady kick ball; lady in dress"
    ),
    "The bird that is being chased by a dog flies above the tree.": (
        "bird; dog; tree | dog chase bird; bird fly above tree"
    ),
}

RELATIVE = {
    "A man who wears a blue hat is jumping over a fence.": (
        "man; hat [blue]; fence | man wear hat; man jump over fence"
    ),
    "The ball that the boy throws is blue.": "ball [blue]; boy | boy throw ball",
    "The log the dog jumps over is wet.": "log [wet]; dog | dog jump over log",
    "There is the white balloon that a child is holding": (
        "balloon [white]; child | child hold balloon"
    ),
    "The cow standing right of a girl is red.": ("cow [red]; girl | cow stand right of girl"),
    "The sitting yellow cat which wears the hat is on the right of a large white cat.": (
        "cat [sitting, yellow]; hat; cat [large, white] | cat wear hat; cat on the right of cat"
    ),
}

CONJUNCTIONS = {
    "A man and a woman hold a kite and a ball.": (
        "man; woman; kite; ball | man hold kite; man hold ball; woman hold kite; woman hold ball"
    ),
    "A girl eats an apple, a pear and a banana.": (
        "girl; apple; pear; banana | girl eat apple; girl eat pear; girl eat banana"
    ),
    "A dog jumps over a log and catches a frisbee.": (
        "dog; log; frisbee | dog jump over log; dog catch frisbee"
    ),
    "A beach with a hat, a big standing cat and a man": (
        "beach; hat; cat [big, standing]; man | beach with hat; beach with cat; beach with man"
    ),
    "The lady rides a bicycle and a large purple duck is flying above the bird.": (
        "lady; bicycle; duck [large, purple]; bird | lady ride bicycle; duck fly above bird"
    ),
}

PREPOSITIONS = {
    "A car in front of a house.": "car; house | car in front of house",
    "A cat sleeps next to a sofa.": "cat; sofa | cat sleep next to sofa",
    "A person is left of an orange dog.": "person; dog [orange] | person left of dog",
    "A red car right of a big cart.": "car [red]; cart [big] | car right of cart",
    "Left of a lady is a truck.": "lady; truck | truck left of lady",
    "A small cat is on top of the table.": "cat [small]; table | cat on top of table",
    "A glass full of water.": "glass [full]; water | glass full of water",
    "There are two cups on the table.": "cup [two]; table | cup on table",
    "On the table there is a lamp.": "table; lamp | lamp on table",
    "Behind the car is a tree.": "car; tree | tree behind car",
    "Behind the house stands a tree.": "house; tree | tree stand behind house",
    "The woman's bag is large.": "woman; bag [large] | woman have bag",
}

HEADLESS = {
    "He is jumping over it.": "jump",
    "Running fast.": "run",
    ".": ".",
    "?!": "?",
    "Someone is riding a horse.": "horse",
    "She looks at them.": "look",
    "犬": "犬",
}

TABLE = OBJECTS | ATTRIBUTES | VERBS | PASSIVE | RELATIVE | CONJUNCTIONS | PREPOSITIONS | HEADLESS


def written(graph: SceneGraph) -> str:
    objects = "; ".join(
        name + (f" [{', '.join(phrases)}]" if phrases else "")
        for name, phrases in zip(graph.names, graph.attributes, strict=True)
    )
    names = graph.names
    edges = "; ".join(f"{names[r.subject]} {r.label} {names[r.object]}" for r in graph.relations)
    return f"{objects} | {edges}" if edges else objects


@pytest.mark.parametrize("sentence", TABLE)
def test_sentence(model: Language, sentence: str) -> None:
    text = sentence.lower() if sentence.isupper() else sentence
    assert written(scene_graph(model(text))) == TABLE[sentence]


def test_objects_keep_their_surface_form(model: Language) -> None:
    graph = scene_graph(model("Two Dogs and three fire trucks."))
    assert graph.objects == ("dogs", "fire trucks")
    assert graph.names == ("dog", "fire truck")


def test_any_order_of_words_has_a_graph(model: Language) -> None:
    """The rules terminate and return a valid graph for any parse of nonsense."""
    rng = random.Random(0)
    words = sorted({word for sentence in TABLE for word in sentence.split()})
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 25))) for _ in range(200)]
    for doc in model.pipe(texts):
        graph = scene_graph(doc)
        assert graph.objects and all(graph.objects)
        assert len(graph.objects) == len(graph.names) == len(graph.attributes)
        for edge in graph.relations:
            assert edge.label and edge.subject != edge.object
            assert min(edge.subject, edge.object) >= 0
            assert max(edge.subject, edge.object) < len(graph.objects)
