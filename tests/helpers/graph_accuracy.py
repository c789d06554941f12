"""Agreement of parsed graphs with true graphs: exact matches of lemmatised parts."""

from collections import Counter
from dataclasses import dataclass
from functools import cache

from spacy.tokens import Doc

from manymatch.scene_graphs.verbs import verb_base


@dataclass(frozen=True)
class Accuracy:
    """Counts of one kind of part (objects, attributes or relations) over all captions."""

    matched: int
    parsed: int
    true: int

    @property
    def precision(self):
        return self.matched / self.parsed if self.parsed else 1.0

    @property
    def recall(self):
        return self.matched / self.true if self.true else 1.0

    @property
    def f1(self):
        total = self.parsed + self.true
        return 2 * self.matched / total if total else 1.0


def accuracy(pairs, lemmatise):
    """Return the accuracy of objects, attributes and relations over (parsed, true) pairs of graphs.

    Attributes are (object, attribute) pairs, and relations (subject, label, object) triples. The
    parts of a graph are compared as multisets.
    """
    counts = {}
    for parsed, true in pairs:
        parsed_parts, true_parts = parts(parsed, lemmatise), parts(true, lemmatise)
        for kind, part in parsed_parts.items():
            count = counts.setdefault(kind, Counter())
            count["matched"] += (part & true_parts[kind]).total()
            count["parsed"] += part.total()
            count["true"] += true_parts[kind].total()
    return {kind: Accuracy(**count) for kind, count in counts.items()}


def parts(graph, lemmatise):
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


def lemmatiser(model):
    """Return a function that lemmatises each word of a phrase, as a verb, else as a noun.

    Without context it makes errors ("leaves" becomes "leave"), but the same errors on both sides of
    a comparison.
    """
    rules = model.get_pipe("lemmatizer")
    bases = rules.lookups.get_table("lemma_index")

    @cache
    def lemma(word):
        for kind in ("VERB", "NOUN"):
            if word in bases[kind.lower()]:
                return word
            token = Doc(model.vocab, words=[word], pos=[kind])[0]
            if (base := rules.lemmatize(token)[0].lower()) != word:
                return verb_base(word, base) if kind == "VERB" else base
        return word

    return lambda phrase: " ".join(lemma(word) for word in phrase.split())
