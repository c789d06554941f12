"""Made-up ablations for the report: better in the middle, with noise between seeds."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any


def write_ablation(
    reports: Path,
    name: str,
    over: dict[str, list[Any]],
    *,
    dataset: str = "scenes",
    seeds: int = 3,
    sets: bool = False,
    **change: Any,
) -> Path:
    """An ablation's file; every combination of `over` is a point."""
    combinations = itertools.product(*over.values())
    settings = [dict(zip(over, values, strict=True)) for values in combinations]
    points = [
        _point(each, number / len(settings), seeds, sets) for number, each in enumerate(settings)
    ]
    record = {
        "name": name,
        "about": f"What {name} is about.",
        "dataset": dataset,
        "preset": None if "preset" in over else "dive",
        "set": {},
        "keys": list(over),
        "seeds": list(range(seeds)),
        "split": "test",
        "images": 300,
        "captions": 1500,
        "setting": "small-scale",
        "points": points,
    }
    path = reports / "ablations" / dataset / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record | change), encoding="utf-8")
    return path


def _point(settings: dict[str, Any], place: float, seeds: int, sets: bool) -> dict[str, Any]:
    label = ", ".join(
        str(value) if key == "preset" else f"{key}={value}" for key, value in settings.items()
    )
    good = 1 - (2 * place - 0.9) ** 2 / 4
    runs = [_run(good, random.Random(f"{label} {seed}"), seed, sets) for seed in range(seeds)]
    return {"label": label, "settings": settings, "resolved": {}, "runs": runs}


def _run(good: float, rng: random.Random, seed: int, sets: bool) -> dict[str, Any]:
    def noisy(value: float) -> float:
        return round(value * good + rng.uniform(-0.02, 0.02) * value, 2)

    ways = {
        way: {"r1": noisy(20.0), "r5": noisy(52.0), "r10": noisy(66.0), "medr": 5.0, "meanr": 15.5}
        for way in ("i2t", "t2i")
    }
    rsum = sum(found[f"r{k}"] for found in ways.values() for k in (1, 5, 10))
    multi = {
        way: {"map_at_r": noisy(value), "r_precision": noisy(2 * value), "r1": noisy(25.0)}
        for way, value in (("i2t", 10.0), ("t2i", 20.0))
    }
    variance = {"log_circular_variance": noisy(-2.5), "winners": noisy(3.0), "rsum_of": {"1": 9.0}}
    of_sets = {"gallery": 300, "rsum": rsum, "images": variance, "texts": variance}
    metrics = {
        **ways,
        "rsum": round(rsum, 2),
        "multi": multi,
        **({"sets": of_sets} if sets else {}),
    }
    pairs = {"share": [[0.7, 0.1], [0.1, 0.1]], "cosine": [[0.6, 0.2], [0.1, 0.4]]}
    return {
        "seed": seed,
        "metrics": metrics,
        "seconds": round(90 + 20 * rng.random(), 1),
        **({"pairs": pairs} if sets else {}),
    }
