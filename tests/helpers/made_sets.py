"""Made-up results of set methods: one whose elements share the work, one whose first wins all."""

import json
import random

RANKS = {"r1": 20.0, "r5": 50.0, "r10": 60.0, "medr": 5.0, "meanr": 20.0}
RECALL = {"i2t": RANKS, "t2i": RANKS, "rsum": 260.0}


def set_metrics(elements, alive):
    """`sets` of the metrics file."""
    rsums = {k: 240.5 - 3 * k if alive or k == 1 else 12.5 for k in elements_of(elements)}
    side = {
        "log_circular_variance": -1.9 if alive else -7.12,
        "log_circular_variance_squared": -1.31 if alive else -6.43,
        "winners": elements - 0.3 if alive else 1.04,
        "distinct": elements - 0.6 if alive else 1.0,
        "rsum_of": {str(k): rsum for k, rsum in rsums.items()},
    }
    selection = {"rsum_of": side["rsum_of"] | {"1+2": 251.25}}
    return {"gallery": 300, "rsum": 260.0, "images": side | selection, "texts": side}


def elements_of(elements):
    return range(1, elements + 1)


def shown_sets(samples, elements, alive):
    """`sets.json` for the queries of a `samples.json`; every third image has boxes, not a grid."""
    rng = random.Random(elements)
    images, captions = samples["images"], samples["captions"]
    maps = [_image_map(query, elements, alive, rng, i) for i, query in enumerate(images)]
    return {
        "gallery": {"images": 300, "captions": 1500},
        "whole": RECALL,
        "selections": [
            {"modality": modality, "elements": [k], "recall": RECALL}
            for modality in ("images", "texts")
            for k in elements_of(elements)
        ],
        "pairs": _pairs(elements, alive),
        "image_maps": maps,
        "caption_maps": [_caption_map(query, elements, rng) for query in captions],
        "nearest": {
            "images": [_finds(query, "image_id", elements, alive) for query in images],
            "captions": [_finds(query, "caption_id", elements, alive) for query in captions],
        },
        "projection": {
            "images": {"vectors": 300 * elements, "places": _places(elements, rng)},
            "texts": {"vectors": 1500 * elements, "places": _places(elements, rng)},
        },
    }


def _pairs(elements, alive):
    def share(k, other):
        if not alive:
            return 0.97 if k == other == 0 else 0.03 / (elements**2 - 1)
        return 0.8 / elements if k == other else 0.2 / (elements**2 - elements)

    rows = range(elements)
    return {
        "share": [[round(share(k, other), 4) for other in rows] for k in rows],
        "cosine": [
            [0.62 if (k + 1) % elements == other else -0.05 for other in rows] for k in rows
        ],
    }


def _image_map(query, elements, alive, rng, number):
    places = [[0.05, 0.3, 0.4, 0.9], [0.35, 0.25, 0.7, 0.95], [0.0, 0.0, 1.0, 1.0]]
    boxes = number % 3 == 2
    count = len(places) if boxes else 49
    weights = [_weights(count, 10 * k + 17 if alive else 24, rng) for k in range(elements)]
    return {
        "image_id": query["image_id"],
        "size": [112, 84 if number % 3 else 112],
        "grid": None if boxes else 7,
        "boxes": places if boxes else None,
        "weights": weights,
        "passes": [[[1 / count] * count] * elements, weights] if alive else [],
    }


def _weights(count, centre, rng):
    """A bump around a cell, with noise; sums to 1."""
    x, y = centre % 7, centre // 7
    raw = [
        0.1 * rng.random() + 2.0 ** -((i % 7 - x) ** 2 + (i // 7 - y % 7) ** 2)
        for i in range(count)
    ]
    return [round(value / sum(raw), 4) for value in raw]


def _caption_map(query, elements, rng):
    words = query["caption"].lower().strip(".").split()
    weights = [[rng.random() ** 3 for _ in words] for _ in range(elements)]
    return {
        "caption_id": query["caption_id"],
        "words": words,
        "weights": [[round(value / sum(row), 4) for value in row] for row in weights],
    }


def _finds(query, key, elements, alive):
    """Element k finds what the query found from place k on; all the same if they are not alive."""
    items = [item | {"element": 1} for item in query["retrieved"]]
    starts = [k if alive else 0 for k in range(elements)]
    return {key: query[key], "elements": [items[start : start + 3] for start in starts]}


def _places(elements, rng):
    return [[[200 * k % 1000, rng.randrange(1001)] for k in range(elements)] for _ in range(20)]


def add_sets(reports, dataset, preset, elements, alive):
    """Make an existing result one of a set method."""
    path = reports / "results" / dataset / f"{preset}.json"
    metrics = json.loads(path.read_text()) | {"sets": set_metrics(elements, alive)}
    path.write_text(json.dumps(metrics))
    folder = reports / "runs" / dataset / preset
    samples = json.loads((folder / "samples.json").read_text())
    (folder / "sets.json").write_text(json.dumps(shown_sets(samples, elements, alive)))
