"""Synthetic pairs as the paper describes them; recalls by hand, learning, seeds, the warm start."""

import json
import math
import statistics
from pathlib import Path

import pytest
import torch
import yaml
from pydantic import ValidationError
from torch.nn import Linear, ReLU
from torch.nn.functional import normalize
from typer.testing import CliRunner

from manymatch.cli import commands
from manymatch.experiments.synthetic import (
    CLASSES,
    PAIRS_A_CLASS,
    Encoders,
    RunSettings,
    _mapped,
    assignment,
    loss,
    make_pairs,
    queued_log_p,
    recalls,
    run,
    train,
)
from manymatch.losses.optimal_transport import sinkhorn
from manymatch.util.errors import DivergenceError

SMALL = RunSettings(n_classes=30, queue=160, epochs=1)


def test_recalls_are_those_of_a_loop():
    generator = torch.Generator().manual_seed(0)
    a, b = (normalize(torch.randn(40, 3, generator=generator), dim=1) for _ in "ab")
    b[3] = b[8]  # a tie counts against the one that asks
    label = torch.arange(40) % 4
    hits, ranks = {"pair": 0, "class": 0}, {"pair": [], "class": []}
    for row in range(40):
        scores = [float(a[row] @ b[column]) for column in range(40)]
        ranked = {"pair": [row], "class": [c for c in range(40) if label[c] == label[row]]}
        for kind, right in ranked.items():
            best = max(scores[column] for column in right)
            ahead = sum(scores[c] >= best for c in range(40) if c not in right)
            hits[kind] += ahead < 5
            ranks[kind].append(ahead + 1)
    values = recalls(a, b, label)
    assert {kind: values[kind]["r5"] for kind in hits} == {k: 2.5 * n for k, n in hits.items()}
    medians = {kind: math.floor(statistics.median(item)) for kind, item in ranks.items()}
    assert {kind: values[kind]["medr"] for kind in hits} == medians
    assert medians["pair"] > medians["class"] >= 1
    assert values["class"]["r1"] > values["pair"]["r1"]
    with pytest.raises(DivergenceError):  # no score would be above NaN
        recalls(a * math.nan, b, label)


def test_the_loss_sums_the_hinges_and_averages_the_labels():
    """Eq. 1, 4 and 6; `losses/test_swapped_labels.py` holds L_s against its own loop."""
    settings = RunSettings(n_classes=6, queue=0, weight=0.5)
    torch.manual_seed(0)
    batch, encoders = make_pairs(0)[0].rows(slice(9)), Encoders(settings.hidden, settings.size)
    labels = settings.loss(settings.size)
    a, b = encoders(batch)
    expected = 0.5 * labels(a, b)
    for i in range(9):
        others = [j for j in range(9) if j != i]
        expected = expected + (0.1 + max(a[i] @ b[j] for j in others) - a[i] @ b[i]).relu()
        expected = expected + (0.1 + max(a[j] @ b[i] for j in others) - a[i] @ b[i]).relu()
    torch.testing.assert_close(sum(loss(encoders, labels, batch, 0.1).values()), expected)


def test_a_run_learns_and_equals_its_repetition():
    first, again = (run(SMALL, 0) for _ in range(2))
    for name in ("seconds", "processor_seconds"):
        del first[name], again[name]
    assert first == again
    assert first["pair"]["r1"] > 1.0  # chance is 0.05
    assert first["class"]["r1"] > 40.0  # chance is 5
    assert first["epoch"] == 1 and first["assignment"] is not None


def test_the_best_epoch_is_kept_after_a_warm_start():
    training, validation, _ = make_pairs(0)
    few = training.rows(slice(256))
    changes = [{"epochs": 1}, {"epochs": 3}, {"contrastive_epochs": 1}]
    short, long, warm = (
        train(SMALL.model_copy(update={"weight": 0.0, **change}), 0, few, validation)
        for change in changes
    )
    assert short.epoch == 1 and 1 <= long.epoch <= 3

    def reached(trained):
        with torch.no_grad():
            return recalls(*trained.encoders(validation), validation.label)["pair"]["r1"]

    assert reached(long) >= reached(short)
    assert not torch.equal(*(next(one.encoders.parameters()) for one in (short, warm)))


def test_the_assignment_told_is_that_of_the_queue():
    training, validation, _ = make_pairs(0)
    few, rare = training.rows(slice(512)), validation.rows(slice(100))
    alone = SMALL.model_copy(update={"queue": 0})
    assert assignment(train(alone, 0, few, rare).labels) is None
    labels = train(SMALL, 0, few, rare).labels
    result, log_p = assignment(labels), queued_log_p(labels)
    assert result is not None and log_p.shape == (160, 30)
    shares = sinkhorn(log_p.detach(), SMALL.eta, rounds=3).double().sum(0)
    assert result["error"] == pytest.approx(float((shares - 160 / 30).abs().max()), rel=1e-4)


def test_pairs_and_networks_are_those_of_the_paper():
    """`presets/papers.csv` has the settings. Networks and modalities have two hidden layers."""
    parts = make_pairs(0)
    assert [part.a.shape for part in parts] == [(7000, 100), (1000, 100), (2000, 100)]
    labels = torch.cat([part.label for part in parts])
    assert labels.bincount().tolist() == [PAIRS_A_CLASS] * CLASSES
    with pytest.raises(ValidationError, match="either rounds or tolerance"):
        RunSettings(tolerance=1e-4)
    for network in (Encoders(50, 5).a, Encoders(50, 5).b):
        shapes = [tuple(item.weight.shape) for item in network if isinstance(item, Linear)]
        assert shapes == [(50, 100), (50, 50), (5, 50)]
        assert [isinstance(item, ReLU) for item in network] == [False, True, False, True, False]
    points = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
    drawn, values = torch.Generator().manual_seed(2), points
    for inputs, outputs in ((5, 50), (50, 50), (50, 100)):
        weights = torch.randn(inputs, outputs, generator=drawn) / inputs**0.5
        values = values @ weights + torch.randn(outputs, generator=drawn)
        values = values.relu() if outputs == 50 else values
    torch.testing.assert_close(_mapped(points, torch.Generator().manual_seed(2)), values)


def test_the_command_prints_the_table(worked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").touch()
    plan = {
        "experiment": "synthetic",
        "set": {"epochs": 1, "n_classes": 20, "queue": 130},
        "points": {"contrastive": {"weight": 0.0}, "SwAMP": {}},
        "baseline": "contrastive",
    }
    Path("small.yaml").write_text(yaml.safe_dump(plan, sort_keys=False))
    words = ["experiment", "small.yaml", "--seeds", "4"]
    outcome = CliRunner().invoke(commands.app, words, catch_exceptions=False)
    assert worked == ["contrastive, seed 4", "SwAMP, seed 4"]
    assert "SwAMP against contrastive, pair R@1" in outcome.stdout
    written = json.loads(Path("reports/synthetic/small.json").read_text())
    assert [point["label"] for point in written["points"]] == ["contrastive", "SwAMP"]
    (swamp,) = written["points"][1]["runs"]
    assert (written["points"][1]["settings"]["n_classes"], swamp["seed"]) == (20, 4)
    assert written["points"][0]["runs"][0]["assignment"] is None
    assert (written["name"], written["baseline"]) == ("small", "contrastive")
