"""The tiny method and its trainings on the tiny data, here or in a process (`tiny_run.py`)."""

import sys
from pathlib import Path

import torch
from tiny_data import TinyData
from torch import Tensor, nn
from torch.nn import functional

from manymatch.config.preset import Preset, read_preset
from manymatch.config.strict import Strict
from manymatch.methods import METHODS
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.networks.encoders.word_vectors import WordTable
from manymatch.training.train import train

METHODS["tiny"] = "tiny_run"  # so that presets can name it


class TinySettings(Strict):
    size: int = 16
    dropout: float = 0.1


class TinyMethod(Method):
    """The smallest method that learns: a linear layer, a bag of words, and a contrastive loss.

    With dropout, a learned temperature and a buffer: what training has to keep track of.
    """

    Settings = TinySettings

    def __init__(self, settings, vocabulary, feature_width):
        super().__init__(settings, vocabulary, feature_width)
        self.image = nn.Linear(feature_width, settings.size)
        self.words = WordTable(len(vocabulary), settings.size, padding_idx=0)
        self.dropout = nn.Dropout(settings.dropout)
        self.temperature = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.steps: Tensor

    def encode_images(self, batch):
        weights = batch.region_mask / batch.region_mask.sum(1, keepdim=True)
        pooled = self.dropout(torch.einsum("nrf,nr->nf", batch.features, weights))
        return Embeddings(functional.normalize(self.image(pooled), dim=1)[:, None])

    def encode_texts(self, batch):
        """Each word is an entity too, so that flat parts are tried as well."""
        read = self.dropout(self.words(batch.words)) * batch.word_mask[..., None]
        vectors = functional.normalize(read.sum(1), dim=1)
        return Embeddings(
            vectors[:, None],
            entities=read[batch.word_mask],
            entity_caption=batch.word_mask.nonzero()[:, 0],
        )

    def score(self, images, texts):
        return images.vectors[:, 0] @ texts.vectors[:, 0].T

    def loss(self, images, texts, batch):
        if self.training:
            self.steps += 1
        scores = self.score(images, texts) * self.temperature.exp()
        assert texts.entities is not None
        assert texts.entity_caption is not None
        spread = texts.entities.square().sum(1) * (1 + batch.image_index[texts.entity_caption])
        return {
            "texts": functional.cross_entropy(scores.T, batch.image_index),
            "spread": 1e-3 * spread.mean(),
        }


def preset(model=None, **training):
    """Four epochs of six steps, with everything on that could spoil a resumed run."""
    settings = {
        "epochs": 4,
        "images_per_batch": 8,
        "captions_per_image": 2,
        "optimizer": {"lr": 0.02},
        "weight_average": 0.9,
        **training,
    }
    return Preset.model_validate(
        {
            "method": "tiny",
            "features": "grid",
            "model": model or {},
            "augmentation": {"word_drop": 0.2, "region_drop": 0.2},
            "training": settings,
        }
    )


class Run:
    """One training in a folder of its own."""

    def __init__(self, folder, data):
        self.folder, self.data = folder, data
        self.model, self.curves, self.checkpoints = (
            folder / name for name in ("model", "curves", "checkpoints")
        )

    def train(self, preset, models=Path("models")):
        data = self.data
        places = (self.model, self.curves, self.checkpoints)
        train(preset, data.shards, data.vocabulary, *places, models)

    def outputs(self):
        """Every file of the model and of the curves."""
        paths = [path for root in (self.model, self.curves) for path in root.rglob("*")]
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(paths)
            if path.is_file()
        }


def main():
    folder, data, preset = map(Path, sys.argv[1:])
    Run(folder, TinyData(data)).train(read_preset(preset))
