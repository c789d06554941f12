"""Made-up costs for the report: all nine methods and cross-attention."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GALLERIES = (10, 100, 1_000, 10_000, 100_000)
ELEMENTS = {"dive": 4, "maxmatch": 4, "pvse": 2}
METHODS = (
    "vsepp",
    "vse_infinity",
    "pvse",
    "pcme",
    "dive",
    "maxmatch",
    "swamp",
    "msrm",
    "cora",
)


def write_costs(reports: Path, dataset: str = "scenes", **change: Any) -> Path:
    """The file of a data set."""
    record = {
        "dataset": dataset,
        "split": "test",
        "images": 300,
        "captions": 1500,
        "hardware": "Some processor 2.50GHz, 2 threads",
        "version": "0.0",
        "git_revision": None,
        "rows": [*(_row(name, number) for number, name in enumerate(METHODS)), _scan()],
    }
    path = reports / "efficiency" / f"{dataset}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record | change), encoding="utf-8")
    return path


def _row(name: str, number: int) -> dict[str, Any]:
    elements = ELEMENTS.get(name, 1)
    search = {size: 0.02 + size * elements**2 * 2e-5 for size in GALLERIES}
    return {
        "name": name,
        "method": name,
        "setting": "small-scale",
        "elements": elements,
        "size": 256,
        "parameters": 1_300_000 + 400_000 * number,
        "multiply_adds": elements**2 * 256 * (2 if name == "msrm" else 1),
        "step": {
            "seconds": 0.1 + 0.05 * number,
            "images": 64,
            "captions": 320,
            "peak_gpu_memory_mb": None,
        },
        "test": {"embedding": 1.5 + 0.1 * number, "ranking": 0.02 * elements, "scaled_from": None},
        "query": {
            "parse": 12.3 if name == "cora" else None,
            "encode": 2.0 + 0.3 * number,
            "search": search,
        },
    }


def _scan() -> dict[str, Any]:
    return {
        "name": "cross-attention",
        "method": "scan",
        "setting": None,
        "elements": 49,
        "size": 256,
        "parameters": 2_900_000,
        "multiply_adds": 2 * 49 * 8 * 256,
        "step": {"seconds": 4.5, "images": 128, "captions": 128, "peak_gpu_memory_mb": None},
        "test": {"embedding": 1.5, "ranking": 336.0, "scaled_from": 120},
        "query": {
            "parse": None,
            "encode": 2.5,
            "search": {size: 0.3 + size * 0.02 for size in GALLERIES},
        },
    }
