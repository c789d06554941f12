"""What the papers claim of the points of an experiment. The claims stand in the experiment's file:

claims:
  MSRM over PCME: {better: msrm, other: pcme}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from manymatch.config.strict import Strict, read_yaml, validate
from manymatch.util.errors import ConfigError, nearest

Metric = Literal["rsum", "map_at_r", "image_variance", "caption_variance"]
"""What is compared; more is better. The report has the label of each metric."""
METRICS: tuple[Metric, ...] = get_args(Metric)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _known(value: Any) -> Any:
    if isinstance(value, str) and value not in METRICS:
        raise ValueError(f"unknown metric '{value}'{nearest(value, METRICS)}")
    return value


KnownMetric = Annotated[Metric, BeforeValidator(_known)]
Labels = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]


class Claim(Strict):
    """The claim that a point exceeds another point in each of the `metrics`. If a side lists
    several points, the point with the best mean stands for the side."""

    better: Labels
    other: Labels
    metrics: Annotated[tuple[KnownMetric, ...], Field(min_length=1)] = ("rsum", "map_at_r")


Claims = dict[str, Claim]
"""Claims by the text that the report shows."""


def unknown_label(claims: Claims, labels: Iterable[str]) -> str | None:
    """What is wrong if a claim names a point that is not among `labels`; None: nothing."""
    known = [*labels]
    for text, claim in claims.items():
        for label in (*claim.better, *claim.other):
            if label not in known:
                return f"claims.{text}: no point is called '{label}'{nearest(label, known)}"
    return None


class _Stated(Strict, extra="ignore"):
    """The keys of an experiment's file that claims are about."""

    claims: Claims = Field(default_factory=dict)
    points: dict[str, Any] = Field(default_factory=dict)
    over: dict[str, Any] = Field(default_factory=dict)


def read_claims(plans: Path, labels: Mapping[str, Iterable[str]]) -> dict[str, Claims]:
    """The claims in the files of experiments in the folder `plans`, by experiment.

    Args:
        labels: the labels of each experiment's points in the files of results. Points that the
            file of the experiment adds may be claimed before they have results.

    Raises:
        ConfigError: a file or a claim is wrong; one line with the file, the claim and the fault.
    """
    claims = {}
    for name, known in labels.items():
        path = plans / f"{name}.yaml"
        if path.is_file():
            stated = validate(_Stated, read_yaml(path), str(path))
            presets = stated.over.get("preset", [])
            known = {*known, *stated.points, *(presets if isinstance(presets, list) else [])}
            if fault := unknown_label(stated.claims, sorted(known)):
                raise ConfigError(f"{path}: {fault}")
            claims[name] = stated.claims
    return claims
