"""The start from another run's model, perhaps of another method or data set: all of it, or a line
that says what does not fit.

Table rows go by word, since vocabularies differ between data sets: words that the other model
does not know start as usual. Optimiser and average always start anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from manymatch.config.preset import Preset, WarmStart
from manymatch.encoders.word_vectors import WordTable
from manymatch.methods.base import Method
from manymatch.methods.checkpoint import VOCABULARY, WEIGHTS, read_weights
from manymatch.system.errors import CheckpointError
from manymatch.system.files import sha256
from manymatch.text.wordpieces import AnyVocabulary, WordPieces, load_vocabulary

_NAMED = 3


@dataclass(frozen=True)
class Source:
    """A trained model in `folder`, and how its parameters belong to ours.

    `sha256` is of its weights and words.
    """

    folder: Path
    settings: WarmStart
    sha256: str

    @torch.no_grad()
    def load(self, method: Method, vocabulary: AnyVocabulary) -> None:
        """Give `method`, which numbers captions by `vocabulary`, the source's weights.

        Raises:
            CheckpointError: a parameter or buffer of either side has no counterpart of equal
                shape, and the settings do not name it; or they name what is not there.
        """
        found, _ = read_weights(self.folder / WEIGHTS)
        known = load_vocabulary(self.folder / VOCABULARY)
        own = method.state_dict()
        placed = self._placed(found, self._but_fresh(own))
        tables = _tables(method)
        theirs, ours = self._rows(known, vocabulary)
        self._refuse("another shape of", _misshapen(placed, own, tables))
        for name, value in placed.items():
            if name in tables:
                own[name][ours] = value[theirs]
            else:
                own[name].copy_(value)

    def _but_fresh(self, own: Iterable[str]) -> set[str]:
        """The names that must be given a value."""
        own = set(own)
        return own - self._named(self.settings.fresh, own, "fresh")

    def _placed(self, found: dict[str, Tensor], wanted: set[str]) -> dict[str, Tensor]:
        """The source's values under our names: for each of `wanted` one, and none left over."""
        rename = self.settings.rename
        unmatched = [old for old in rename if not any(_begins(name, old) for name in found)]
        self._refuse("no parameter in the source for warm_start.rename", unmatched)
        unused = self._named(self.settings.unused, found, "unused")
        moved = [(_renamed(name, rename), name) for name in sorted(found) if name not in unused]
        placed = {new: found[name] for new, name in moved}
        twice = [name for new, name in moved if found[name] is not placed[new]]
        self._refuse("a place that others have too (see warm_start.rename) for", twice)
        lost = [name for new, name in moved if new not in wanted]
        self._refuse("no place (see warm_start.rename and unused) for", lost)
        self._refuse("nothing (see warm_start.rename and fresh) for", wanted - placed.keys())
        return placed

    def _named(self, patterns: Sequence[str], names: Iterable[str], key: str) -> set[str]:
        """Those of `names` that a pattern matches; each pattern must match one."""
        matched = [{name for name in names if re.search(pattern, name)} for pattern in patterns]
        idle = [pattern for pattern, hits in zip(patterns, matched, strict=True) if not hits]
        self._refuse(f"no parameter for warm_start.{key}", idle)
        return set().union(*matched)

    def _rows(self, known: AnyVocabulary, own: AnyVocabulary) -> tuple[list[int], list[int]]:
        """Rows of the source's tables, and of ours, for the words that both know."""
        if (
            isinstance(known, WordPieces)
            and isinstance(own, WordPieces)
            and known.words != own.words
        ):
            raise CheckpointError(
                f"{self.folder}: warm start: made with other wordpieces; give the preset the BERT "
                "weights that the model had"
            )
        places = {word: row for row, word in enumerate(known.words)}
        pairs = [(places[word], row) for row, word in enumerate(own.words) if word in places]
        return [row for row, _ in pairs], [row for _, row in pairs]

    def _refuse(self, problem: str, names: Iterable[str]) -> None:
        ordered = sorted(names)
        if ordered:
            shown = ", ".join(f"'{name}'" for name in ordered[:_NAMED])
            more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
            raise CheckpointError(f"{self.folder}: warm start: {problem} {shown}{more}")


def find_source(preset: Preset, models: Path) -> Source | None:
    """The model under `models` that `preset` starts from, if any; `CheckpointError` without it."""
    settings = preset.warm_start
    if settings is None:
        return None
    dataset, method = settings.model.split("/")
    folder = models / dataset / method
    files = [folder / name for name in (WEIGHTS, VOCABULARY)]
    if not all(file.is_file() for file in files):
        raise CheckpointError(
            f"{folder}: no trained model to start from (warm_start.model); "
            f"run 'manymatch train {dataset} {method}' first"
        )
    digest = hashlib.sha256("".join(map(sha256, files)).encode()).hexdigest()
    return Source(folder, settings, digest)


def _begins(name: str, part: str) -> bool:
    """Whether the dotted `name` is `part` or lies below it."""
    return name == part or name.startswith(f"{part}.")


def _renamed(name: str, rename: dict[str, str]) -> str:
    """`name` with the longest beginning that `rename` knows replaced."""
    olds = [old for old in rename if _begins(name, old)]
    if not olds:
        return name
    old = max(olds, key=len)
    return rename[old] + name[len(old) :]


def _tables(method: Method) -> set[str]:
    """The names of the weights whose rows are words."""
    modules = method.named_modules(remove_duplicate=False)
    return {f"{name}.weight" for name, module in modules if isinstance(module, WordTable)}


def _misshapen(
    placed: dict[str, Tensor], own: dict[str, Tensor], tables: set[str]
) -> Iterable[str]:
    """What differs in shape; of tables, whose rows go by word, in width."""
    for name, value in placed.items():
        first = 1 if name in tables else 0
        if value.shape[first:] != own[name].shape[first:]:
            yield f"{name} {tuple(value.shape)} for {tuple(own[name].shape)}"
