"""How an index differs from the one before."""

from __future__ import annotations

from dataclasses import dataclass

from manymatch.search.index.items import Entry


@dataclass(frozen=True)
class Changes:
    """The number of items in an index, and how many of them differ from the earlier index.

    Attributes:
        embedded: embedded by this run.
        renamed: under a new path with a known content.
        broken: left out because they cannot be read.
    """

    items: int
    embedded: int
    added: int
    changed: int
    renamed: int
    removed: int
    broken: int

    @classmethod
    def between(
        cls, before: list[Entry], after: list[Entry], embedded: int, broken: int
    ) -> Changes:
        """The changes from the items `before` to the items `after`."""
        hashes = {entry.path: entry.sha256 for entry in before}
        known = set(hashes.values())
        new = [entry for entry in after if entry.path not in hashes]
        renamed = sum(entry.sha256 in known for entry in new)
        gone = len(hashes) + len(new) - len(after)
        return cls(
            items=len(after),
            embedded=embedded,
            added=len(new) - renamed,
            changed=sum(hashes.get(entry.path, entry.sha256) != entry.sha256 for entry in after),
            renamed=renamed,
            removed=max(0, gone - renamed),
            broken=broken,
        )

    def __str__(self) -> str:
        names = ("added", "changed", "renamed", "removed", "broken")
        counts = [f"{getattr(self, name):,} {name}" for name in names if getattr(self, name)]
        return ", ".join([f"{self.items:,} items", *counts, f"{self.embedded:,} embedded"])
