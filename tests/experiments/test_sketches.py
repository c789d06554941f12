"""Sketches: training on seen classes finds images of unseen ones; and every fault is one line."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
import yaml
from command_line import printed
from made_sketches import CLASSES, UNSEEN, WIDTH, write_sketches
from one_by_one import run_one_by_one

from manymatch.config.strict import validate
from manymatch.experiments import sketch_training
from manymatch.experiments.sketch_features import DataSettings, class_of, read_data
from manymatch.experiments.sketch_training import (
    CUT,
    NAMES,
    Partners,
    SketchSettings,
    loss,
    retrieval,
    run,
)
from manymatch.losses.pseudo_labels import LabelSettings, SwappedLabels
from manymatch.losses.triplets import triplet
from manymatch.methods.shared.matching import Matching
from manymatch.util.errors import DataError, DivergenceError

SMALL = {"hidden": 32, "size": 16, "epochs": 6, "batch": 32, "lr": 0.005, "n_classes": 10}
SMALL |= {"queue": 64, "validation": 0.15}


@pytest.fixture
def data(tmp_path):
    return write_sketches(tmp_path)


def settings(data):
    return validate(DataSettings, data, "data")


def test_the_published_files_and_other_forms(data, tmp_path):
    dataset = read_data(settings(data))
    assert len(dataset.sketches.labels) == 20 * CLASSES
    assert len(dataset.images.labels) == 30 * CLASSES
    assert [dataset.classes[number] for number in dataset.unseen] == UNSEEN
    assert not set(dataset.seen.tolist()) & set(dataset.unseen.tolist())
    features = np.load(data["sketches"]["features"])
    raw = torch.from_numpy(features)
    expected = raw / raw.norm(dim=1, keepdim=True)
    torch.testing.assert_close(dataset.sketches.vectors.float(), expected, atol=1e-3, rtol=1e-3)
    assert dataset.classes[int(dataset.sketches.labels[7])] == "kind-7"

    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["vgg"], file["other"] = features, features[:2]
    lines = [path.decode() for path in np.load(data["sketches"]["classes"])]
    (tmp_path / "s.txt").write_text("".join(f"{line} {k % 24}\n" for k, line in enumerate(lines)))
    (tmp_path / "zero.txt").write_text("".join(f"{name} {k}\n" for k, name in enumerate(UNSEEN)))
    sketches = {"features": f"{tmp_path / 's.h5'}:vgg", "classes": str(tmp_path / "s.txt")}
    other = read_data(settings(data | {"sketches": sketches, "unseen": str(tmp_path / "zero.txt")}))
    assert torch.equal(other.sketches.vectors, dataset.sketches.vectors)
    assert torch.equal(other.sketches.labels, dataset.sketches.labels)
    assert torch.equal(other.unseen, dataset.unseen)
    for line, name in {
        "sketch/tx_0/zebra/n02-1.png": "zebra",
        "EXTEND_image_sketchy/hot-air balloon/a b.jpg 7": "hot-air balloon",
        "hot-air balloon 7": "hot-air balloon",
        "12": "12",
    }.items():
        assert class_of(line) == name


def nan_rows(rows):
    return np.where(np.arange(len(rows))[:, None] == 5, np.nan, rows)


FAULTS = {
    "not finite": ("sketches", "features", nan_rows, "row 5 holds NaN or infinity"),
    "too long": ("sketches", "features", lambda rows: rows * 1e25, "too large or too small"),
    "too short": ("images", "features", lambda rows: rows * 1e-25, "too large or too small"),
    "rows": ("sketches", "features", lambda rows: rows[:-1], "480 classes for the 479 rows"),
    "shape": ("sketches", "features", lambda rows: rows[0], "not (rows, width)"),
    "kind": ("sketches", "features", lambda rows: rows.astype("S3"), "not real numbers"),
    "classes": ("sketches", "classes", lambda rows: rows[:, None], "not one name or number"),
    "kind of classes": ("sketches", "classes", lambda rows: np.ones(len(rows)), "not one name"),
    "width": ("images", "features", lambda rows: rows[:, 1:], f"{WIDTH - 1} numbers in a row"),
}


@pytest.mark.parametrize("fault", [*FAULTS, "cut off", "missing", "unseen", "few"])
def test_files_that_do_not_fit_are_one_line(data, fault):
    file = Path(data["sketches"]["features"])
    if fault in FAULTS:
        side, key, change, words = FAULTS[fault]
        changed = (data[side] if side == "sketches" else data[side][1])[key]
        np.save(changed, change(np.load(changed)))
    elif fault == "cut off":
        words = str(file)
        file.write_bytes(file.read_bytes()[:400])
    elif fault == "missing":
        words = "no such file"
        file.unlink()
    else:
        many = [f"kind-{number}" for number in range(22)]
        data["unseen"] = many if fault == "few" else ["zebra"]
        words = "2 classes with sketches" if fault == "few" else "class 'zebra' has no sketches"
    with pytest.raises(DataError) as error:
        read_data(settings(data))
    assert words in str(error.value) and "\n" not in str(error.value)


def test_partners_are_of_the_class_and_all_of_them_come(data):
    torch.manual_seed(0)
    images = read_data(settings(data)).images
    wanted = torch.tensor([3, 5]).repeat_interleave(600)
    drawn = Partners(images.of(torch.tensor([3, 5, 9]))).draw(wanted)
    for label in (3, 5):
        own = {tuple(row.tolist()) for row in images.vectors[images.labels == label]}
        assert {tuple(row.tolist()) for row in drawn[wanted == label]} == own


def total(terms):
    return torch.stack(list(terms.values())).sum()


def test_images_of_the_own_class_are_no_negatives():
    torch.manual_seed(0)
    pairs = [torch.nn.functional.normalize(torch.randn(5, 4), dim=1) for _ in range(2)]
    classes = torch.tensor([0, 1, 0, 2, 1])
    selected = SketchSettings(weight=0.0, margin=0.5)
    matching = Matching(selected)
    scores = (pairs[0] @ pairs[1].T).tolist()
    expected = 0.0
    for i in range(5):
        others = [j for j in range(5) if classes[j] != classes[i]]
        expected += max(max(0.0, 0.5 + scores[i][j] - scores[i][i]) for j in others)
        expected += max(max(0.0, 0.5 + scores[j][i] - scores[i][i]) for j in others)
    result = total(loss((pairs[0], pairs[1]), classes, matching, None))
    assert float(result) == pytest.approx(expected, rel=1e-5)
    alone = torch.arange(5)
    plain = 5 * triplet(pairs[0] @ pairs[1].T, alone, 0.5)
    torch.testing.assert_close(total(loss((pairs[0], pairs[1]), alone, matching, None)), plain)
    labels = SwappedLabels(LabelSettings(weight=0.3, n_classes=3, queue=0, tau=0.25), 4)
    both = total(loss((pairs[0], pairs[1]), alone, matching, labels))
    torch.testing.assert_close(both, plain + 0.3 * labels(*pairs))


def test_the_command_trains_tests_and_writes(data, tmp_path, monkeypatch):
    run_one_by_one(monkeypatch)
    experiment = {
        "experiment": "sketches",
        "about": "Made-up sketches.",
        "dataset": "sketchy-extended",
        "data": data,
        "set": SMALL,
        "points": {"triplet": {"weight": 0.0}, "SwAMP": {}},
        "seeds": [0, 1],
        "baseline": "triplet",
    }
    (tmp_path / "made.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    assert "SwAMP" in printed("experiment", "made.yaml")
    record = json.loads((tmp_path / "reports/sketches/made.json").read_text())
    assert record["classes"] == {"seen": 18, "unseen": 6}
    assert record["images"] == {"seen": 540, "unseen": 180}
    assert [point["label"] for point in record["points"]] == ["triplet", "SwAMP"]
    for point in record["points"]:
        for one in point["runs"]:
            assert one["map"] > 35, "a sixth by chance"
    assert all(len(digest) == 64 for _, digest in record["provenance"]["files"])

    # The run file gives the same precision.
    lines = (tmp_path / "reports/runs/sketches/made/SwAMP-1.trec").read_text().splitlines()
    assert len(lines) == 6 * 20 * 180
    fields = [line.split() for line in lines]
    right = [query.split("/")[0] == item.split("/")[0] for query, _, item, *_ in fields]
    assert sum(right) / 200 / 120 * 100 == pytest.approx(record["points"][1]["runs"][1]["p_at_200"])
    places = [int(line[3]) for line in fields if line[0] == fields[0][0]]
    assert places == list(range(1, 181))

    # Runs on other data are others: one class fewer is unseen.
    trained = []
    monkeypatch.setattr(sketch_training, "run", lambda *of: trained.append(of[2]) or run(*of))
    experiment["data"] = data | {"unseen": UNSEEN[1:]}
    (tmp_path / "made.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False))
    printed("experiment", "made.yaml", "--seeds", "0")
    assert trained == [0, 0]
    written = {path.name for path in (tmp_path / "reports/runs/sketches/made").iterdir()}
    assert written == {"triplet-0.trec", "SwAMP-0.trec"}
    # The same seed gives the same run.
    again = run(SketchSettings(**SMALL), read_data(settings(data)), 0)
    assert again["map"] == record["points"][1]["runs"][0]["map"]


def naive(queries, labels, gallery, of_gallery):
    totals = dict.fromkeys(NAMES, 0.0)
    for query, label in zip(queries, labels.tolist(), strict=True):
        scored = [
            (-float(query @ image), other == label, other)
            for image, other in zip(gallery, of_gallery.tolist(), strict=True)
        ]
        hits = [hit for _, hit, _ in sorted(scored, key=lambda entry: entry[:2])]
        right = sum(hits)

        def gained(most, hits=hits):
            return sum(sum(hits[: k + 1]) / (k + 1) for k in range(min(most, len(hits))) if hits[k])

        near = sum(hits[:CUT])
        totals["map"] += gained(len(hits)) / right
        totals["map_at_200"] += gained(CUT) / near if near else 0.0
        totals["map_at_200_r"] += gained(CUT) / min(right, CUT)
        totals["p_at_200"] += near / CUT
    return {name: 100 * value / len(queries) for name, value in totals.items()}


def made(n, m, classes, steps=None):
    """Coordinates in `steps` make many equal scores."""
    generator = torch.Generator().manual_seed(n + m)
    queries, gallery = (
        torch.randn(count, 4, generator=generator, dtype=torch.float64) for count in (n, m)
    )
    if steps:
        queries, gallery = (queries * steps).round() / 8, (gallery * steps).round() / 8
    labels = torch.randint(classes, (n,), generator=generator)
    return queries, labels, gallery, torch.arange(m) % classes


@pytest.mark.parametrize("sizes", [(1, 3, 1), (9, 450, 2), (5, 230, 40), (8, 300, 3, 2)])
def test_the_metrics_are_those_of_a_loop(sizes):
    given = made(*sizes)
    for scores in (1, 100, 2**24):  # at once
        assert retrieval(*given, scores=scores) == pytest.approx(naive(*given), abs=1e-9)
    with pytest.raises(DivergenceError):
        retrieval(given[0] * torch.nan, *given[1:])
