"""The batches of a preset."""

from __future__ import annotations

from tiny_data import TinyData

from manymatch.config.preset import Preset
from manymatch.shards.read import classes_of, samples
from manymatch.text.vocabulary import Vocabulary
from manymatch.training.data import Data, TrainingBatches


def test_one_image_a_class_in_every_epoch(tiny: TinyData) -> None:
    training = {"images_per_batch": 6, "captions_per_image": 1, "one_per_class": True}
    preset = Preset.model_validate({"method": "vsepp", "features": "grid", "training": training})
    names = [sample.image_id for sample in samples(tiny.shards, "train")]
    class_of = dict(zip(names, classes_of(tiny.shards, "train").tolist(), strict=True))
    result = TrainingBatches(preset, Data(tiny.shards, Vocabulary.load(tiny.vocabulary)))
    for epoch in range(3):
        result.epoch = epoch
        read = [[class_of[name] for name in batch.image_ids] for batch in result]
        assert len(read) == len(result) >= 5
        assert all(len(set(batch)) == 6 for batch in read)
