"""The values of each epoch, and the best epoch."""

from __future__ import annotations

from dataclasses import dataclass, field

RSUM = "validation/rsum"


@dataclass
class History:
    """One row of named values for each epoch."""

    rows: list[dict[str, float]] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The epoch (0-based) of the highest validation rsum; the earliest of equal ones."""
        return max(range(len(self.rows)), key=lambda epoch: self.rows[epoch][RSUM])

    @property
    def improved(self) -> bool:
        """Whether the last epoch is the best."""
        return self.best == len(self.rows) - 1

    def ended(self, epochs: int, patience: int | None) -> bool:
        """Whether `epochs` are done, or `patience` of them have passed since the best."""
        done = len(self.rows)
        return done >= epochs or (
            patience is not None and done > 0 and done - 1 - self.best >= patience
        )
