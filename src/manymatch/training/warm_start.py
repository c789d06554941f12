"""The warm start from another run's model, which may be of another method or data set.

Rows of word tables are matched by word, because vocabularies differ between data sets. Words that
the other model does not know start as without a warm start. Optimiser and average always start
anew.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from manymatch.batch.pieces import Pieces
from manymatch.batch.wordpieces import AnyVocabulary, load_vocabulary
from manymatch.config.preset import Preset, WarmStart, names_matching
from manymatch.methods.shared.method import Method
from manymatch.model.checkpoint import (
    VOCABULARY,
    VOCABULARY_HASH,
    WEIGHTS,
    WEIGHTS_HASH,
    check_files,
    read_weights,
)
from manymatch.model.facts import FACTS
from manymatch.networks.encoders.word_vectors import WordTable
from manymatch.util.errors import CheckpointError

_NAMED = 3


@dataclass(frozen=True)
class Source:
    """A trained model in `folder`, the hash of its weights and words, and the `settings` that match
    its parameters with the method's."""

    folder: Path
    settings: WarmStart
    sha256: str

    @torch.no_grad()
    def load(self, method: Method, vocabulary: AnyVocabulary) -> None:
        """Copy the source's weights to `method`, which numbers captions by `vocabulary`. It is a
        `CheckpointError` if a parameter or buffer of either side has no counterpart of equal shape
        and the settings do not name it, or if they name a parameter that does not exist."""
        weights = method.state_dict()
        fresh = self._matched(self.settings.fresh, weights, "fresh")
        values = self._renamed(weights.keys() - fresh)
        modules = method.named_modules(remove_duplicate=False)
        tables = {f"{name}.weight" for name, part in modules if isinstance(part, WordTable)}
        source_rows, rows = self._rows(vocabulary)
        self._refuse(
            "another shape of",
            [
                f"{name} {tuple(value.shape)} for {tuple(weights[name].shape)}"
                for name, value in values.items()  # word tables may differ in their rows
                if value.shape[name in tables :] != weights[name].shape[name in tables :]
            ],
        )
        for name, value in values.items():
            if name in tables:
                weights[name][rows] = value[source_rows]
            else:
                weights[name].copy_(value)

    def _renamed(self, targets: set[str]) -> dict[str, Tensor]:
        """The source's values by the method's names: one for each of `targets`, and no others."""
        rename, (source, _) = self.settings.rename, read_weights(self.folder / WEIGHTS)
        unmatched = [old for old in rename if not any(_has_prefix(name, old) for name in source)]
        self._refuse("no parameter in the source for warm_start.rename", unmatched)
        unused = self._matched(self.settings.unused, source, "unused")
        names = [(_new_name(name, rename), name) for name in sorted(source) if name not in unused]
        values = {new: source[name] for new, name in names}
        twice = [name for new, name in names if source[name] is not values[new]]
        self._refuse("several parameters of the same new name (see warm_start.rename):", twice)
        surplus = [name for new, name in names if new not in targets]
        self._refuse("no counterpart (see warm_start.rename and unused) for", surplus)
        missing = targets - values.keys()
        self._refuse("no value in the source (see warm_start.rename and fresh) for", missing)
        return values

    def _matched(self, patterns: Sequence[str], names: Iterable[str], key: str) -> set[str]:
        """The `names` that match a pattern; each pattern must match a name."""
        matches = [names_matching(pattern, names) for pattern in patterns]
        idle = [pattern for pattern, hits in zip(patterns, matches, strict=True) if not hits]
        self._refuse(f"no parameter for warm_start.{key}", idle)
        return set().union(*matches)

    def _rows(self, target: AnyVocabulary) -> tuple[list[int], list[int]]:
        """Rows of the source's tables, and of the method's, for the words of both vocabularies."""
        source = load_vocabulary(self.folder / VOCABULARY)
        pieces = isinstance(source, Pieces) and isinstance(target, Pieces)
        if pieces and source.words != target.words:
            raise CheckpointError(
                f"{self.folder}: warm start: made with other wordpieces. Give the preset the text "
                "model of the source."
            )
        source_rows = {word: row for row, word in enumerate(source.words)}
        rows = [row for row, word in enumerate(target.words) if word in source_rows]
        return [source_rows[target.words[row]] for row in rows], rows

    def _refuse(self, problem: str, names: Iterable[str]) -> None:
        ordered = sorted(names)
        if ordered:
            shown = ", ".join(f"'{name}'" for name in ordered[:_NAMED])
            more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
            raise CheckpointError(f"{self.folder}: warm start: {problem} {shown}{more}")


def find_source(preset: Preset, models: Path) -> Source | None:
    """The model in the folder `models` from which `preset` starts; None without a warm start. A
    missing or damaged model is a `CheckpointError`."""
    settings = preset.warm_start
    if settings is None:
        return None
    folder = models / settings.model
    if not all((folder / name).is_file() for name in (WEIGHTS, VOCABULARY, FACTS)):
        raise CheckpointError(
            f"{folder}: no trained model to start from (warm_start.model). "
            f"Run 'manymatch train {settings.model.replace('/', ' ')}' first."
        )
    hashes = check_files(folder)
    both = hashes[WEIGHTS_HASH] + hashes[VOCABULARY_HASH]
    return Source(folder, settings, hashlib.sha256(both.encode()).hexdigest())


def _has_prefix(name: str, prefix: str) -> bool:
    """Whether the dotted `name` is `prefix` or is below it."""
    return name == prefix or name.startswith(f"{prefix}.")


def _new_name(name: str, rename: dict[str, str]) -> str:
    """`name` with the longest prefix in `rename` replaced."""
    prefix = max((old for old in rename if _has_prefix(name, old)), key=len, default="")
    return rename[prefix] + name[len(prefix) :] if prefix else name
