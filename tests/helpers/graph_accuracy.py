"""Agreement of parsed graphs with true graphs: exact matches of lemmatised parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from spacy.language import Language
from spacy.tokens import Doc

from manymatch.batch.scene_graph import SceneGraph
from manymatch.scene_graphs.verbs import verb_base

Lemmatise = Callable[[str], str]
Parts = dict[str, Counter[tuple[str, ...]]]


@dataclass(frozen=True)
class Accuracy:
    """Counts of one kind of part (objects, attributes or relations) over all captions."""

    matched: int
    parsed: int
    true: int

    @property
    def precision(self) -> float:
        return self.matched / self.parsed if self.parsed else 1.0

    @property
    def recall(self) -> float:
        return self.matched / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        total = self.parsed + self.true
        return 2 * self.matched / total if total else 1.0


def accuracy(
    pairs: Iterable[tuple[SceneGraph, SceneGraph]], lemmatise: Lemmatise
) -> dict[str, Accuracy]:
    """Return the accuracy of objects, attributes and relations over (parsed, true) pairs of graphs.

    Attributes are (object, attribute) pairs, and relations (subject, label, object) triples. The
    parts of a graph are compared as multisets.
    """
    counts: dict[str, Counter[str]] = {}
    for parsed, true in pairs:
        parsed_parts, true_parts = parts(parsed, lemmatise), parts(true, lemmatise)
        for kind, part in parsed_parts.items():
            count = counts.setdefault(kind, Counter())
            count["matched"] += (part & true_parts[kind]).total()
            count["parsed"] += part.total()
            count["true"] += true_parts[kind].total()
    return {kind: Accuracy(**count) for kind, count in counts.items()}


def parts(graph: SceneGraph, lemmatise: Lemmatise) -> Parts:
    """Return a graph's objects, (object, attribute) pairs and (subject, label, object) triples."""
    names = [lemmatise(name) for name in graph.names]
    described = zip(names, graph.attributes, strict=True)
    return {
        "objects": Counter((name,) for name in names),
        "attributes": Counter((name, lemmatise(p)) for name, phrases in described for p in phrases),
        "relations": Counter(
            (names[edge.subject], lemmatise(edge.label), names[edge.object])
            for edge in graph.relations
        ),
    }


def lemmatiser(model: Language) -> Lemmatise:
    """Return a function that lemmatises each word of a phrase, as a verb, else as a noun.

    Without context it makes errors ("leaves" becomes "leave"), but the same errors on both sides of
    a comparison.
    """
    rules = model.get_pipe("lemmatizer")
    bases = rules.lookups.get_table("lemma_index")  # type: ignore[attr-defined]

    @cache
    def lemma(word: str) -> str:
        for kind in ("VERB", "NOUN"):
            if word in bases[kind.lower()]:
                return word
            token = Doc(model.vocab, words=[word], pos=[kind])[0]
            if (base := rules.lemmatize(token)[0].lower()) != word:  # type: ignore[attr-defined]
                return verb_base(word, base) if kind == "VERB" else base
        return word

    return lambda phrase: " ".join(lemma(word) for word in phrase.split())
