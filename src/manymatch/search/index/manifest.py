"""`manifest.json`: what an index holds, and the model that made its embeddings.

The folder of an index has one seal, which covers its codes, too.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from manymatch.model.answer import Side
from manymatch.results.base import Record
from manymatch.util.errors import CheckpointError, DataError, content_of
from manymatch.util.json_file import read_object
from manymatch.util.seal import Seal, open_sealed

if TYPE_CHECKING:
    from manymatch.model.model import Model
    from manymatch.search.index.sources import Entry

NAME, CODES = "manifest.json", "codes"
TABLE, KEY = "items", "manymatch"
"""The table of an index in LanceDB, and the name of our metadata there."""
REMEDY = "Run 'manymatch index' again"


class Manifest(Record):
    """The content of `manifest.json`.

    Attributes:
        model: the folder of the model, relative to the index, or the model's name on the hub.
        identity: what decides the embeddings: method, image features, and hashes of the weights.
        source: the indexed folder or file, relative to the index.
        kind: the kind of the source, as in `sources.source_at`.
        split: the split of the shards; None: all, or the source has no splits.
        side: whether the items are images or texts.
        items: the number of items.
        broken: the number of items that could not be read and are left out.
    """

    model: str
    identity: dict[str, str]
    source: str
    kind: str
    split: str | None
    side: Side
    items: Annotated[int, Field(ge=1)]
    broken: Annotated[int, Field(ge=0)]

    @classmethod
    def read(cls, seal: Seal) -> "Manifest":
        """The manifest of the index with this seal.

        Raises:
            DataError: the manifest is damaged, or does not belong to an index.
        """
        path = seal.check(NAME)
        with content_of(path, "a manifest of an index", REMEDY):
            return cls.model_validate(read_object(path))

    def check_model(self, model: "Model", folder: Path) -> None:
        """Refuse a model that did not make the embeddings of the index in `folder`: a
        `CheckpointError` for another method, other weights, image features or preprocessing."""
        identity = model_identity(model)
        for key in dict.fromkeys([*self.identity, *identity]):
            if identity.get(key) != self.identity.get(key):
                raise CheckpointError(
                    f"{folder}: made by another model: its {key} is '{self.identity.get(key)}', "
                    f"but the model's is '{identity.get(key)}'. Use the model "
                    f"{self.model_from(folder)}, or make a new index."
                )

    def model_from(self, folder: Path) -> str:
        """The model of the index in `folder`, as `--model` takes it from here: the path of its
        folder, or its name on the hub."""
        with suppress(OSError):  # a name that no file can have
            if (own := folder / self.model).is_dir():
                return os.path.realpath(own)
        return self.model


@dataclass(frozen=True)
class Changes:
    """The number of items in an index, and how many of them differ from the earlier index. Renamed
    items have a new path and a known content; broken ones cannot be read and are left out."""

    items: int
    embedded: int
    added: int
    changed: int
    renamed: int
    removed: int
    broken: int

    @classmethod
    def between(
        cls, former: "Sequence[Entry]", kept: "Sequence[Entry]", embedded: int, broken: int
    ) -> "Changes":
        """How the items `kept` differ from the `former` ones."""
        hashes = {entry.path: entry.sha256 for entry in former}
        contents = set(hashes.values())
        new = [entry for entry in kept if entry.path not in hashes]
        renamed = sum(entry.sha256 in contents for entry in new)
        return cls(
            items=len(kept),
            embedded=embedded,
            added=len(new) - renamed,
            changed=sum(hashes.get(entry.path, entry.sha256) != entry.sha256 for entry in kept),
            renamed=renamed,
            removed=max(0, len(hashes) + len(new) - len(kept) - renamed),
            broken=broken,
        )

    def __str__(self) -> str:
        names = ("added", "changed", "renamed", "removed", "broken")
        counts = [f"{getattr(self, name):,} {name}" for name in names if getattr(self, name)]
        return ", ".join([f"{self.items:,} items", *counts, f"{self.embedded:,} embedded"])


def seal_of(folder: Path) -> Seal:
    """The seal of the index in `folder`. No file is compared with the seal yet.

    Raises:
        DataError: there is no index, its seal is damaged, or an older version wrote the index.
    """
    if not (folder / NAME).is_file():
        raise DataError(f"{folder}: not an index, because {NAME} is missing. {REMEDY}")
    return open_sealed(folder, REMEDY, whole_bytes=None)


def is_table(place: str | Path) -> bool:
    """Whether the index at `place` is a table of LanceDB: a URL, or a folder with the table."""
    return "://" in str(place) or Path(place, f"{TABLE}.lance").is_dir()


def check_codes(seal: Seal) -> None:
    """Compare the codes of the index with the seal, once per process: a `DataError` for a file that
    is damaged or missing, or that is not in the seal."""
    found = {f"{CODES}/{path.name}" for path in (seal.path / CODES).glob("*")}
    for name in sorted(found | {name for name in seal.hashes if name.startswith(f"{CODES}/")}):
        seal.check(name)


def relative(path: str, folder: Path | str) -> str:
    """A path as seen from `folder`, so that both can move together; a model's name on the hub, of
    which there is no file, stays. Links are resolved: ".." leads from where a link leads to. From
    a URL the path is absolute."""
    if not Path(path).exists():
        return path
    if isinstance(folder, str):
        return os.path.realpath(path)
    return os.path.relpath(os.path.realpath(path), os.path.realpath(folder))


def model_identity(model: "Model") -> dict[str, str]:
    """The facts of a model that decide its embeddings."""
    facts = model.facts
    return {
        "method": model.preset.method,
        "features": model.preset.features,
        **{f"image_{key}": str(value) for key, value in facts["extraction"].items()},
        **{
            key: str(facts[key]) for key in ("weights_sha256", "preset_sha256", "vocabulary_sha256")
        },
        "parser": str(facts.get("parser")),
    }
