"""Made-up results of set methods: one whose elements share the work, one whose first wins all."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

RANKS = {"r1": 20.0, "r5": 50.0, "r10": 60.0, "medr": 5.0, "meanr": 20.0}
RECALL = {"i2t": RANKS, "t2i": RANKS, "rsum": 260.0}


def set_metrics(elements: int, alive: bool) -> dict[str, Any]:
    """`sets` of the metrics file."""
    rsums = {k: 240.5 - 3 * k if alive or k == 1 else 12.5 for k in elements_of(elements)}
    side = {
        "log_circular_variance": -1.9 if alive else -7.12,
        "winners": elements - 0.3 if alive else 1.04,
        "rsum_of": {str(k): rsum for k, rsum in rsums.items()},
    }
    selection = {"rsum_of": side["rsum_of"] | {"1+2": 251.25}}
    return {"gallery": 300, "rsum": 260.0, "images": side | selection, "texts": side}


def elements_of(elements: int) -> range:
    return range(1, elements + 1)


def shown_sets(samples: dict[str, Any], elements: int, alive: bool) -> dict[str, Any]:
    """`sets.json` for the queries of a `samples.json`; every third image has boxes, not a grid."""
    rng = random.Random(elements)
    images, captions = samples["images"], samples["captions"]
    maps = [_image_map(query, elements, alive, rng, i % 3 == 2) for i, query in enumerate(images)]
    return {
        "gallery": {"images": 300, "captions": 1500},
        "whole": RECALL,
        "chosen": [
            {"modality": modality, "elements": [k], "recall": RECALL}
            for modality in ("images", "texts")
            for k in elements_of(elements)
        ],
        "pairs": _pairs(elements, alive),
        "image_maps": maps,
        "caption_maps": [_caption_map(query, elements, rng) for query in captions],
        "projection": {
            "images": [query["image_id"] for query in images[:6]],
            "points": _points(elements, rng),
        },
    }


def _pairs(elements: int, alive: bool) -> dict[str, Any]:
    def share(k: int, other: int) -> float:
        if not alive:
            return 0.97 if k == other == 0 else 0.03 / (elements**2 - 1)
        return 0.8 / elements if k == other else 0.2 / (elements**2 - elements)

    rows = range(elements)
    return {
        "share": [[round(share(k, other), 4) for other in rows] for k in rows],
        "cosine": [[0.62 if k == other else -0.05 for other in rows] for k in rows],
    }


def _image_map(
    query: dict[str, Any], elements: int, alive: bool, rng: random.Random, boxes: bool
) -> dict[str, Any]:
    places = [[0.05, 0.3, 0.4, 0.9], [0.35, 0.25, 0.7, 0.95], [0.0, 0.0, 1.0, 1.0]]
    count = len(places) if boxes else 49
    return {
        "image_id": query["image_id"],
        "size": [112, 84 if int(query["image_id"]) % 3 else 112],
        "grid": None if boxes else 7,
        "boxes": places if boxes else None,
        "weights": [_weights(count, 10 * k + 17 if alive else 24, rng) for k in range(elements)],
    }


def _weights(count: int, centre: int, rng: random.Random) -> list[float]:
    """A bump around a cell, with noise; sums to 1."""
    x, y = centre % 7, centre // 7
    raw = [
        0.1 * rng.random() + 2.0 ** -((i % 7 - x) ** 2 + (i // 7 - y % 7) ** 2)
        for i in range(count)
    ]
    return [round(value / sum(raw), 4) for value in raw]


def _caption_map(query: dict[str, Any], elements: int, rng: random.Random) -> dict[str, Any]:
    words = query["caption"].lower().strip(".").split()
    weights = [[rng.random() ** 3 for _ in words] for _ in range(elements)]
    return {
        "caption_id": query["caption_id"],
        "words": words,
        "weights": [[round(value / sum(row), 4) for value in row] for row in weights],
    }


def _points(elements: int, rng: random.Random) -> list[dict[str, Any]]:
    def point(image: int, caption: int | None, element: int) -> dict[str, Any]:
        x, y = 30 * (image % 3) + 8 * element, 40 * (image // 3) - 6 * element
        return {
            "x": round(rng.gauss(x, 3), 2),
            "y": round(rng.gauss(y, 3), 2),
            "image": image,
            "modality": "texts" if caption else "images",
            "element": element,
            "caption": caption,
        }

    captions = (None, 1, 2, 3, 4, 5)
    return [point(i, c, k) for i in range(6) for c in captions for k in elements_of(elements)]


def add_sets(reports: Path, dataset: str, preset: str, elements: int, alive: bool) -> None:
    """Make an existing result one of a set method."""
    path = reports / "metrics" / dataset / f"{preset}.json"
    metrics = json.loads(path.read_text()) | {"sets": set_metrics(elements, alive)}
    path.write_text(json.dumps(metrics))
    folder = reports / "runs" / dataset / preset
    samples = json.loads((folder / "samples.json").read_text())
    (folder / "sets.json").write_text(json.dumps(shown_sets(samples, elements, alive)))
