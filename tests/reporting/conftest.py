"""A realistic `reports` folder, made up: 2 data sets x 2 methods."""

import base64
import io
import math
import shutil
from pathlib import Path

import pytest
from complete_results import complete
from made_results import CHECKPOINT, write_clusters, write_experiment, write_synthetic, written
from PIL import Image
from report_pages import plans_of

from manymatch.reporting.report import report

COLOURS = ["red", "blue", "green", "yellow"]
KINDS = ["ball", "house", "tree", "car"]
SIDES = ["to the left of", "above", "behind", "near"]
METHODS = {"vsepp": 0.55, "cora": 0.25}
"""Preset and how noisy its scores are."""


def thumbnail(number):
    """Base64 JPEG, 112 px wide, in a colour of its own."""
    stream = io.BytesIO()
    colour = f"hsl({9 * number % 360}, 60%, 60%)"
    Image.new("RGB", (112, 84 if number % 3 else 112), colour).save(stream, "JPEG")
    return base64.b64encode(stream.getvalue()).decode()


def _caption(image, k):
    """One of the image's five captions."""
    objects = [f"{COLOURS[n % 4]} {KINDS[(n + image) % 4]}" for n in (image, image + k + 1)]
    text = f"A {objects[0]} {SIDES[k % 4]} a {objects[1]}."
    return {"caption_id": f"{image:06d}#{k}", "caption": text}


def _graph(image, k):
    edges = [(0, SIDES[k % 4], 1), (2, "next to", 0)]
    return {
        "objects": KINDS[:3],
        "names": KINDS[:3],
        "attributes": [[COLOURS[image % 4]], [], []],
        "relations": [dict(zip(("subject", "label", "object"), e, strict=True)) for e in edges],
    }


def _image(image):
    return {"image_id": f"{image:06d}", "thumbnail": thumbnail(image)}


def samples(noise, judged, queries=12):
    """What the evaluation writes: sample queries and their ten best answers. More noise moves the
    query's own pair further down."""

    def retrieved(query, answer):
        owners = [(query + rank - int(10 * noise)) % 40 for rank in range(10)]
        others = ["true" if judged and rank < 2 else "wrong" for rank in range(10)]
        return [
            {**answer(owner), "score": 1 - rank / 10, "mark": "own" if owner == query else other}
            for rank, (owner, other) in enumerate(zip(owners, others, strict=True))
        ]

    return {
        "images": [
            {
                **_image(n),
                "captions": [_caption(n, k)["caption"] for k in range(5)],
                "retrieved": retrieved(n, lambda owner: _caption(owner, owner % 5)),
            }
            for n in range(queries)
        ],
        "captions": [
            {**_caption(n, n % 5), "graph": _graph(n, n % 5), "retrieved": retrieved(n, _image)}
            for n in range(queries)
        ],
    }


def metrics(noise, judged):
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


def provenance(dataset, preset):
    return {
        "method": preset,
        "preset": preset,
        "dataset": dataset,
        "split": "test",
        "seed": 0,
        "features": "lite0",
        "setting": "small-scale",
        "checkpoint_sha256": CHECKPOINT,
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


def write_curve(folder, name, values):
    """As dvclive does."""
    path = folder / "plots" / "metrics" / f"{name}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"step\t{path.stem}", *(f"{step}\t{value}" for step, value in enumerate(values))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_result(reports, dataset, preset, *, judged=True):
    """All files of one result."""
    noise = METHODS[preset]
    written(reports / "results" / dataset / f"{preset}.json", metrics(noise, judged))
    written(reports / "provenance" / dataset / f"{preset}.json", provenance(dataset, preset))
    written(reports / "machine" / dataset / f"{preset}.json", {"train": USAGE})
    written(reports / "runs" / dataset / preset / "samples.json", samples(noise, judged))
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
def _results(tmp_path_factory):
    reports = tmp_path_factory.mktemp("results")
    for preset in METHODS:
        write_result(reports, "scenes", preset)
        write_result(reports, "flickr8k", preset, judged=False)
    write_experiment(reports, "scenes-study", {"preset": ["vsepp", "cora", "dive"]})
    write_experiment(reports, "dive-alpha", {"similarity.alpha": [1, 4, 16, 64]}, sets=True)
    write_experiment(
        reports, "dive-similarity", {"similarity.name": ["mil", "mp"], "w": [0.0, 0.1]}
    )
    write_clusters(reports, "scenes", "swamp", {str(n): thumbnail(n) for n in range(4)})
    write_synthetic(reports, "swamp", {"contrastive": [84.0, 85.0], "SwAMP": [90.0, 92.0]})
    return reports


@pytest.fixture
def reports(_results, tmp_path):
    """A folder of results of its own for each test."""
    return Path(shutil.copytree(_results, tmp_path / "reports"))


@pytest.fixture(scope="session")
def complete_results(_results, tmp_path_factory):
    """Results with everything that the report can show, and their report; no test changes them."""
    reports = Path(shutil.copytree(_results, tmp_path_factory.mktemp("complete") / "reports"))
    complete(reports)
    report(reports, plans_of(reports))
    return reports
