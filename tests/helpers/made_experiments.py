"""Result files of synthetic pairs (`manymatch experiment`) and of `manymatch clusters`, for the
report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_experiment(reports: Path, name: str, r1: dict[str, list[float]], **change: Any) -> Path:
    """An experiment whose points have these R@1 of pairs, a run each; of classes half the way to
    100. `SwAMP` has an assignment."""
    points = [
        {"label": label, "settings": {}, "runs": [_run(*run, label) for run in enumerate(values)]}
        for label, values in r1.items()
    ]
    record = {
        "name": name,
        "about": f"What {name} is about.",
        "baseline": next(iter(r1)),
        "published": {"SwAMP": {"pair": 90.8, "class": 95.7}},
        "seeds": list(range(len(points[0]["runs"]))),
        "points": points,
    }
    return _written(reports / "synthetic" / f"{name}.json", record | change)


def _run(seed: int, r1: float, label: str) -> dict[str, Any]:
    return {
        "seed": seed,
        "pair": {"r1": r1, "r5": 99.0, "r10": 99.5, "medr": 1.0 + seed},
        "class": {"r1": (r1 + 100) / 2, "r5": 100.0, "r10": 100.0, "medr": 1.0},
        "epoch": 90,
        "assignment": {"error": 14.2, "steps": 20 + seed} if label == "SwAMP" else None,
        "seconds": 100.0,
        "processor_seconds": 80.0,
    }


def write_clusters(
    reports: Path, dataset: str, preset: str, thumbnails: dict[str, str | None], **change: Any
) -> Path:
    """Two classes; the first has an image for each of the thumbnails."""
    captions = [{"caption_id": f"{n}#0", "caption": f"A dog chases ball {n}."} for n in range(6)]
    record = {
        "dataset": dataset,
        "split": "test",
        "preset": preset,
        "method": "swamp",
        "seed": 0,
        "checkpoint_sha256": "3f79bb",
        "n_classes": 200,
        "used": {"captions": 2, "images": 1},
        "agreement": 62.5,
        "classes": [
            {
                "number": 17,
                "nouns": [["dog", 6], ["ball", 6]],
                "verbs": [["chase", 6]],
                "captions": captions,
                "images": list(thumbnails),
                "thumbnails": thumbnails,
            },
            {
                "number": 3,
                "nouns": [],
                "verbs": [],
                "captions": captions[:1],
                "images": [],
                "thumbnails": {},
            },
        ],
    }
    return _written(reports / "clusters" / dataset / f"{preset}.json", record | change)


def _written(path: Path, record: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    return path
