"""Where the result of an evaluated model comes from."""

from __future__ import annotations

from typing import ClassVar, Literal

from manymatch.results.base import Record, Result


class Member(Record):
    """One model of an ensemble."""

    preset: str
    method: str
    seed: int
    features: str


class Provenance(Result):
    """Model, data and settings behind a result. The report shows unknown keys as they are.

    An ensemble's `method`, `seed` and `features` are those of its `members`, joined by "+" where
    the members differ.
    """

    path: ClassVar[str] = "provenance/{dataset}/{preset}.json"
    remedy: ClassVar[str] = "Run 'manymatch evaluate {dataset} {preset}' again."

    dataset: str
    preset: str
    method: str
    split: str
    seed: int | str
    features: str
    setting: Literal["small-scale", "reproduced", "external"]
    images: int
    captions: int
    checkpoint_sha256: str | None = None
    """The hash of the model; None: scores of another program."""
    members: tuple[Member, ...] = ()
    rerank_beta: float | None = None
    """Weight of the caption's score in a re-ranked result; None: not re-ranked."""
