"""The warm start from another run's model, which may be of another method or data set.

Rows of word tables are matched by word, because vocabularies differ between data sets. Words that
the other model does not know start as without a warm start. Optimiser and average always start
anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from manymatch.batch.wordpieces import AnyVocabulary, WordPieces, load_vocabulary
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
    """A trained model in `folder`, and the `settings` that match its parameters with the method's.

    `sha256` is the hash of its weights and words.
    """

    folder: Path
    settings: WarmStart
    sha256: str

    @torch.no_grad()
    def load(self, method: Method, vocabulary: AnyVocabulary) -> None:
        """Copy the source's weights to `method`, which numbers captions by `vocabulary`.

        Raises:
            CheckpointError: a parameter or buffer of either side has no counterpart of equal
                shape, and the settings do not name it; or the settings name a parameter that does
                not exist.
        """
        source_weights, _ = read_weights(self.folder / WEIGHTS)
        source_vocabulary = load_vocabulary(self.folder / VOCABULARY)
        weights = method.state_dict()
        renamed = self._renamed(source_weights, self._not_fresh(weights))
        tables = _tables(method)
        source_rows, rows = self._rows(source_vocabulary, vocabulary)
        self._refuse("another shape of", _misshapen(renamed, weights, tables))
        for name, value in renamed.items():
            if name in tables:
                weights[name][rows] = value[source_rows]
            else:
                weights[name].copy_(value)

    def _not_fresh(self, weights: Iterable[str]) -> set[str]:
        """The names of the weights that need a value of the source."""
        names = set(weights)
        return names - self._matched(self.settings.fresh, names, "fresh")

    def _renamed(self, source: dict[str, Tensor], targets: set[str]) -> dict[str, Tensor]:
        """The source's values by the method's names: one for each of `targets`, and no others."""
        rename = self.settings.rename
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

    def _rows(self, source: AnyVocabulary, target: AnyVocabulary) -> tuple[list[int], list[int]]:
        """Rows of the source's tables, and of the method's, for the words of both vocabularies."""
        if (
            isinstance(source, WordPieces)
            and isinstance(target, WordPieces)
            and source.words != target.words
        ):
            raise CheckpointError(
                f"{self.folder}: warm start: made with other wordpieces. Give the preset the BERT "
                "weights of the model."
            )
        source_rows = {word: row for row, word in enumerate(source.words)}
        pairs = [
            (source_rows[word], row) for row, word in enumerate(target.words) if word in source_rows
        ]
        return [row for row, _ in pairs], [row for _, row in pairs]

    def _refuse(self, problem: str, names: Iterable[str]) -> None:
        ordered = sorted(names)
        if ordered:
            shown = ", ".join(f"'{name}'" for name in ordered[:_NAMED])
            more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
            raise CheckpointError(f"{self.folder}: warm start: {problem} {shown}{more}")


def find_source(preset: Preset, models: Path) -> Source | None:
    """The model in the folder `models` from which `preset` starts; None without a warm start.

    Raises:
        CheckpointError: the model does not exist or is damaged.
    """
    settings = preset.warm_start
    if settings is None:
        return None
    dataset, method = settings.model.split("/")
    folder = models / dataset / method
    if not all((folder / name).is_file() for name in (WEIGHTS, VOCABULARY, FACTS)):
        raise CheckpointError(
            f"{folder}: no trained model to start from (warm_start.model). "
            f"Run 'manymatch train {dataset} {method}' first."
        )
    hashes = check_files(folder)
    both = hashes[WEIGHTS_HASH] + hashes[VOCABULARY_HASH]
    digest = hashlib.sha256(both.encode()).hexdigest()
    return Source(folder, settings, digest)


def _has_prefix(name: str, prefix: str) -> bool:
    """Whether the dotted `name` is `prefix` or is below it."""
    return name == prefix or name.startswith(f"{prefix}.")


def _new_name(name: str, rename: dict[str, str]) -> str:
    """`name` with the longest prefix in `rename` replaced."""
    prefixes = [old for old in rename if _has_prefix(name, old)]
    if not prefixes:
        return name
    prefix = max(prefixes, key=len)
    return rename[prefix] + name[len(prefix) :]


def _tables(method: Method) -> set[str]:
    """The names of the weights whose rows are words."""
    modules = method.named_modules(remove_duplicate=False)
    return {f"{name}.weight" for name, module in modules if isinstance(module, WordTable)}


def _misshapen(
    values: dict[str, Tensor], weights: dict[str, Tensor], tables: set[str]
) -> Iterable[str]:
    """The names and shapes that differ; word tables may differ in the number of rows."""
    for name, value in values.items():
        first = 1 if name in tables else 0
        if value.shape[first:] != weights[name].shape[first:]:
            yield f"{name} {tuple(value.shape)} for {tuple(weights[name].shape)}"
