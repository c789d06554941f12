"""A space of settings, and trainings that are made up: the rsum is a function of the settings."""

import json

import yaml

from manymatch.model.facts import FACTS
from manymatch.training.checkpoints import RSUM, History
from manymatch.util.errors import DeviceMemoryError, DivergenceError

LR, EPOCHS = "training.optimizer.lr", "training.epochs"
SPACE = {
    "set": {EPOCHS: 3},
    "pruning": {"after_trials": 2, "after_full_epochs": 1},
    "domains": {"dropout": {"low": 0.0, "high": 0.5}},
    "shared": {LR: {"low": 0.0001, "high": 0.1, "log": True}},
    "methods": {
        "vsepp": {
            "feature_dropout": "dropout",
            "loss": {
                "options": {
                    "InfoNCE": {"objective": "info_nce", "temperature": {"low": 0.01, "high": 1.0}},
                    "hardest": {"objective": "triplet", "margin": {"low": 0.1, "high": 0.3}},
                }
            },
        },
        "cora": {},
    },
}


def made_up_training(preset, layout, dataset, folder, end_of_epoch=None):
    model = folder / "model"
    if model.exists():
        return model
    lr, epochs = preset.training.optimizer.lr, preset.training.epochs
    if lr > 1:
        raise DeviceMemoryError("a batch") if lr > 1e10 else DivergenceError("training diverged")
    best = 100 * lr + preset.model.get("feature_dropout", 0.0) + preset.seed + epochs / 7
    history = History()
    for epoch in range(epochs):
        history.rows.append({RSUM: best * (epoch + 1) / epochs})
        if end_of_epoch:
            end_of_epoch(history)
    model.mkdir()
    facts = {"rsum": best, "epoch": epochs, "epochs": epochs}
    (model / FACTS).write_text(json.dumps(facts))
    return model


def write_space(checkout, value):
    path = checkout.layout.search_space("tiny")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value))
