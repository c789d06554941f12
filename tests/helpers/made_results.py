"""Made-up result files for the report: experiments that are better in the middle, with noise
between seeds; costs of all methods and of cross-attention; synthetic pairs; sketches; tuning;
classes of a SwAMP."""

import itertools
import json
import random

CHECKPOINT = "3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea"
"""The hash of every model."""


def write_experiment(
    reports, name, over, *, dataset="scenes", seeds=3, sets=False, rsums=None, **change
):
    """The file of an experiment on presets; every combination of `over` is a point. `rsums`
    are those of the runs of some points, by label."""
    combinations = itertools.product(*over.values())
    settings = [dict(zip(over, values, strict=True)) for values in combinations]
    points = [
        _point(setting, number / len(settings), seeds, sets)
        for number, setting in enumerate(settings)
    ]
    for point in points:
        if rsums and point["label"] in rsums:
            pairs = [*zip(point["runs"], rsums[point["label"]], strict=False)]
            point["runs"] = [run | {"metrics": run["metrics"] | {"rsum": r}} for run, r in pairs]
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
    return written(reports / "experiments" / dataset / f"{name}.json", record | change)


def _point(settings, position, seeds, sets):
    label = ", ".join(
        str(value) if key == "preset" else f"{key}={value}" for key, value in settings.items()
    )
    good = 1 - (2 * position - 0.9) ** 2 / 4
    runs = [_run(good, random.Random(f"{label} {seed}"), seed, sets) for seed in range(seeds)]
    return {"label": label, "settings": settings, "resolved": {}, "runs": runs}


def _run(good, rng, seed, sets):
    def noisy(value):
        return round(value * good + rng.uniform(-0.02, 0.02) * value, 2)

    ways = {
        way: {"r1": noisy(20.0), "r5": noisy(52.0), "r10": noisy(66.0), "medr": 5.0, "meanr": 15.5}
        for way in ("i2t", "t2i")
    }
    rsum = sum(recalls[f"r{k}"] for recalls in ways.values() for k in (1, 5, 10))
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


GALLERIES = (10, 100, 1_000, 10_000, 100_000)
ELEMENTS = {"dive": 4, "maxmatch": 4, "pvse": 2}
OF_COSTS = (
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


def write_costs(reports, dataset="scenes", **change):
    """The file of a data set."""
    record = {
        "dataset": dataset,
        "split": "test",
        "images": 300,
        "captions": 1500,
        "hardware": "Some processor 2.50GHz, 2 threads",
        "version": "0.0",
        "git_revision": None,
        "rows": [*(_cost_row(name, number) for number, name in enumerate(OF_COSTS)), _scan()],
    }
    return written(reports / "efficiency" / f"{dataset}.json", record | change)


def _cost_row(name, number):
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


def _scan():
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


def write_synthetic(reports, name, r1, **change):
    """An experiment whose points have these R@1 of pairs, a run each; of classes half the way to
    100. `SwAMP` has an assignment."""
    points = [
        {
            "label": label,
            "settings": {},
            "runs": [_pairs_run(*run, label) for run in enumerate(values)],
        }
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
    return written(reports / "synthetic" / f"{name}.json", record | change)


def _pairs_run(seed, r1, label):
    return {
        "seed": seed,
        "pair": {"r1": r1, "r5": 99.0, "r10": 99.5, "medr": 1.0 + seed},
        "class": {"r1": (r1 + 100) / 2, "r5": 100.0, "r10": 100.0, "medr": 1.0},
        "epoch": 90,
        "assignment": {"error": 14.2, "steps": 20 + seed} if label == "SwAMP" else None,
        "seconds": 100.0,
        "processor_seconds": 80.0,
    }


def write_sketches(reports, name="made", **change):
    """Two points of two seeds each."""
    points = [
        {"label": label, "settings": {}, "runs": [_sketch_run(seed, value) for seed in (0, 1)]}
        for label, value in (("triplet", 30.0), ("SwAMP", 36.0))
    ]
    record = {
        "name": name,
        "about": "What it is about.",
        "dataset": "sketchy-extended",
        "baseline": "triplet",
        "seeds": [0, 1],
        "points": points,
    }
    return written(reports / "sketches" / f"{name}.json", record | change)


def _sketch_run(seed, value):
    values = {"map": value + seed, "map_at_200": value + 10, "map_at_200_r": 9.0, "p_at_200": 8.0}
    return {"seed": seed, **values, "validation": 50.0, "epoch": 3, "seconds": 7.0}


def tuning(rsums, preset="vsepp", **change):
    """A search whose trials have these rsums; None: the trial diverged. A negative rsum is that of
    a pruned trial."""
    trials = [
        {
            "state": "diverged" if rsum is None else "pruned" if rsum < 0 else "complete",
            "settings": {"training.optimizer.lr": 0.001 * (number + 1)},
            "rsum": None if rsum is None else abs(rsum),
            "epochs": 8,
            "seconds": 90.0,
        }
        for number, rsum in enumerate(rsums)
    ]
    names = {"dataset": "scenes", "preset": preset, "method": "vsepp"}
    budget = {"trials_allowed": len(rsums), "hours_allowed": None, "set": {}}
    return {**names, **budget, "trials": trials, **change}


def write_clusters(reports, dataset, preset, thumbnails, **change):
    """Two classes; the first has an image for each of the thumbnails."""
    captions = [{"caption_id": f"{n}#0", "caption": f"A dog chases ball {n}."} for n in range(6)]
    record = {
        "dataset": dataset,
        "split": "test",
        "preset": preset,
        "method": "swamp",
        "seed": 0,
        "checkpoint_sha256": CHECKPOINT,
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
    return written(reports / "clusters" / dataset / f"{preset}.json", record | change)


def written(path, record):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    return path
