"""A realistic `reports` folder, made up: 2 data sets x 2 methods."""

from __future__ import annotations

import base64
import io
import json
import math
import random
import shutil
from pathlib import Path

import pytest
from made_ablations import write_ablation
from made_experiments import write_clusters, write_experiment
from PIL import Image

COLOURS = ["red", "blue", "green", "yellow"]
KINDS = ["ball", "house", "tree", "car"]
SIDES = ["to the left of", "above", "behind", "near"]
METHODS = {"vsepp": 0.55, "cora": 0.25}
"""Preset and how noisy its scores are."""

Thing = tuple[str, str]


def scene(number: int) -> list[Thing]:
    """Two or three things, each a colour and a kind."""
    rng = random.Random(number)
    kinds = rng.sample(KINDS, rng.choice([2, 2, 3]))
    return [(rng.choice(COLOURS), kind) for kind in kinds]


def thumbnail(number: int) -> str:
    """Base64 JPEG, 112 px wide, in a colour of its own."""
    stream = io.BytesIO()
    colour = f"hsl({9 * number % 360}, 60%, 60%)"
    Image.new("RGB", (112, 84 if number % 3 else 112), colour).save(stream, "JPEG")
    return base64.b64encode(stream.getvalue()).decode()


def _phrase(thing: Thing) -> str:
    return f"a {thing[0]} {thing[1]}"


def caption(image: int, k: int) -> str:
    """One of the image's five captions, each telling a part of it."""
    things = scene(image)
    rng = random.Random(image * 7 + k)
    first, second = rng.sample(things, 2)
    if k == 0:
        return f"There is {_phrase(first)}."
    if k == 1:
        return f"{_phrase(first)}, and {' and '.join(_phrase(t) for t in things if t != first)}"
    return f"{_phrase(first)} {SIDES[k % 4]} {_phrase(second)}".capitalize() + "."


def graph(image: int, k: int) -> dict:
    things = [t for t in scene(image) if f"{t[0]} {t[1]}" in caption(image, k).lower()]
    edges = [
        {"subject": i, "label": SIDES[(k + i) % 4], "object": i + 1} for i in range(len(things) - 1)
    ]
    if len(things) == 3:
        edges.append({"subject": 2, "label": "next to", "object": 0})
    return {
        "objects": [kind for _, kind in things],
        "names": [kind for _, kind in things],
        "attributes": [[colour] for colour, _ in things],
        "relations": edges,
    }


def _mark(image: int, owner: int, text: str, judged: bool) -> str:
    if image == owner:
        return "own"
    message = [t for t in scene(owner) if f"{t[0]} {t[1]}" in text.lower()]
    return "true" if judged and all(thing in scene(image) for thing in message) else "wrong"


def _score(image: int, owner: int, k: int, noise: float) -> float:
    rng = random.Random(f"{image}/{owner}/{k}/{noise}")
    shared = len(set(scene(image)) & set(scene(owner))) / 3
    return 0.4 * shared + 0.25 * (image == owner) + noise * 0.4 * rng.random()


def samples(noise: float, judged: bool, images: int = 40, queries: int = 12) -> dict:
    """What the evaluation writes: sample queries and their ten best answers."""
    pairs = [(image, k) for image in range(images) for k in range(5)]
    return {
        "images": [_image_query(i, pairs, noise, judged) for i in range(queries)],
        "captions": [_caption_query(i, i % 5, images, noise, judged) for i in range(queries)],
    }


def _image_query(image: int, pairs: list[tuple[int, int]], noise: float, judged: bool) -> dict:
    best = sorted(pairs, key=lambda pair: -_score(image, *pair, noise))[:10]
    return {
        "image_id": f"{image:06d}",
        "thumbnail": thumbnail(image),
        "captions": [caption(image, k) for k in range(5)],
        "retrieved": [
            {
                "caption_id": f"{owner:06d}#{k}",
                "caption": caption(owner, k),
                "score": _score(image, owner, k, noise),
                "mark": _mark(image, owner, caption(owner, k), judged),
            }
            for owner, k in best
        ],
    }


def _caption_query(owner: int, k: int, images: int, noise: float, judged: bool) -> dict:
    best = sorted(range(images), key=lambda image: -_score(image, owner, k, noise))[:10]
    return {
        "caption_id": f"{owner:06d}#{k}",
        "caption": caption(owner, k),
        "graph": graph(owner, k),
        "retrieved": [
            {
                "image_id": f"{image:06d}",
                "thumbnail": thumbnail(image),
                "score": _score(image, owner, k, noise),
                "mark": _mark(image, owner, caption(owner, k), judged),
            }
            for image in best
        ],
    }


def metrics(noise: float, judged: bool) -> dict:
    """Plausible numbers, better for less noise."""
    ways = {
        way: {
            "r1": round(70 - 60 * noise - lag, 2),
            "r5": round(92 - 50 * noise - lag, 2),
            "r10": round(98 - 40 * noise - lag, 2),
            "medr": 1.0 + round(6 * noise),
            "meanr": 3.25 + 10 * noise,
        }
        for way, lag in (("i2t", 0), ("t2i", 9.5))
    }
    rsum = sum(way[f"r{k}"] for way in ways.values() for k in (1, 5, 10))
    multi = {
        way: {
            "map_at_r": 44.4 - 30 * noise,
            "r_precision": 51.3 - 30 * noise,
            "r1": 80 - 40 * noise,
        }
        for way in ways
    }
    return {**ways, "rsum": round(rsum, 2), **({"multi": multi} if judged else {})}


def provenance(dataset: str, preset: str) -> dict:
    return {
        "method": preset,
        "preset": preset,
        "dataset": dataset,
        "split": "test",
        "seed": 0,
        "features": "lite0",
        "setting": "small-scale",
        "checkpoint_sha256": "3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea",
        "data_sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "version": "0.1.0",
        "images": 300,
        "captions": 1500,
        "parameters": 3_412_480,
        "resolved": {"method": preset, "features": "lite0", "training": {"epochs": 30, "seed": 0}},
    }


USAGE = {
    "date": "2026-01-02T03:04:05+00:00",
    "host": "here",
    "device": "cpu (2 threads)",
    "seconds": 192.4,
    "peak_memory_mb": 1234.5,
    "git_revision": "0b6663f5c0ffee0b6663f5c0ffee0b6663f5c0ff",
}


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_curve(folder: Path, name: str, values: list[float]) -> None:
    """As dvclive does."""
    path = folder / "plots" / "metrics" / f"{name}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"step\t{path.stem}", *(f"{step}\t{value}" for step, value in enumerate(values))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_result(reports: Path, dataset: str, preset: str, *, judged: bool = True) -> None:
    """All files of one result."""
    noise = METHODS[preset]
    write_json(reports / "results" / dataset / f"{preset}.json", metrics(noise, judged))
    write_json(reports / "provenance" / dataset / f"{preset}.json", provenance(dataset, preset))
    write_json(reports / "machine" / dataset / f"{preset}.json", {"train": USAGE})
    write_json(reports / "runs" / dataset / preset / "samples.json", samples(noise, judged))
    curves = reports / "curves" / dataset / preset
    terms = ["loss", "triplet"] if preset == "vsepp" else ["loss", "global", "entity", "specific"]
    for i, term in enumerate(terms, start=1):
        losses = [i * math.exp(-epoch / 8) + 0.02 * (epoch % 3) for epoch in range(30)]
        write_curve(curves, f"train/{term}", losses)
    top = 330 - 200 * noise
    rsums = [top * (1 - math.exp(-(epoch + 1) / 6)) - 4 * (epoch % 2) for epoch in range(30)]
    write_curve(curves, "validation/rsum", rsums)
    write_curve(curves, "epoch", [float(epoch) for epoch in range(30)])


@pytest.fixture(scope="session")
def _results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reports = tmp_path_factory.mktemp("results")
    for preset in METHODS:
        write_result(reports, "scenes", preset)
        write_result(reports, "flickr8k", preset, judged=False)
    write_ablation(reports, "scenes-methods", {"preset": ["vsepp", "cora", "dive"]})
    write_ablation(reports, "dive-alpha", {"similarity.alpha": [1, 4, 16, 64]}, sets=True)
    write_ablation(reports, "dive-similarity", {"similarity.name": ["mil", "mp"], "w": [0.0, 0.1]})
    write_clusters(reports, "scenes", "swamp", {str(n): thumbnail(n) for n in range(4)})
    write_experiment(reports, "swamp", {"contrastive": [84.0, 85.0], "SwAMP": [90.0, 92.0]})
    return reports


@pytest.fixture
def reports(_results: Path, tmp_path: Path) -> Path:
    """A folder of results of its own for each test."""
    return Path(shutil.copytree(_results, tmp_path / "reports"))
