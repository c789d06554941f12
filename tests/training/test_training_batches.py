"""The batches of a preset."""

import contextlib
import itertools
import threading

import pytest
import torch

from manymatch.config.preset import Preset
from manymatch.scene_graphs.verbs import add_verbs
from manymatch.shards.fetch import fetch
from manymatch.shards.read import classes_of, samples
from manymatch.training.data import TrainingBatches, ValidationBatches, features_memory
from manymatch.util.errors import ConfigError


def preset(method="vsepp", **training):
    settings = {"images_per_batch": 6, "captions_per_image": 1, **training}
    return Preset.model_validate({"method": method, "features": "grid", "training": settings})


@pytest.fixture
def training_batches(data):
    return lambda method="vsepp", **training: TrainingBatches(preset(method, **training), data)


def test_more_processes_than_images_are_refused(data):
    with pytest.raises(
        ConfigError, match=r"too few images .* 3 processes. Raise training.fraction"
    ):
        TrainingBatches(preset(fraction=0.02), data, 0, 3)


def test_one_image_a_class_in_every_epoch(tiny, training_batches):
    names = [sample.image_id for sample in samples(tiny.shards, "train")]
    class_of = dict(zip(names, classes_of(tiny.shards, "train").tolist(), strict=True))
    results = [
        training_batches(one_per_class=True, features_in=source) for source in ("shards", "memory")
    ]
    for epoch in range(3):
        read = []
        for result in results:
            result.epoch = epoch
            read.append([batch.image_ids for (batch,) in result])
            assert len(read[-1]) == len(result) >= 5
        assert read[0] == read[1]
        assert len({*itertools.chain(*read[0])}) < 6 * len(read[0]), "no class began again"
        assert all(len({class_of[name] for name in batch}) == 6 for batch in read[0])


@pytest.mark.parametrize("verbs", [True, False])
def test_verbs_of_relations_are_attributes_as_the_preset_says(tiny, data, training_batches, verbs):
    """Only a method that reads graphs gets them."""
    ((batch,), *_) = training_batches("vsepp")
    assert batch.graphs is None
    graphs = {
        caption.id: add_verbs(caption.graph) if verbs else caption.graph
        for sample in samples(tiny.shards, "train")
        for caption in sample.captions
    }
    settings = preset("cora").model_copy(update={"model": {"verb_attributes": verbs}})
    for (batch,) in TrainingBatches(settings, data):
        expected = [
            len(phrases) for name in batch.caption_ids for phrases in graphs[name].attributes
        ]
        assert (batch.graphs.object_attributes != 0).sum(1).tolist() == expected


def test_an_epoch_from_memory_opens_no_shard(training_batches, monkeypatch):
    result = training_batches(features_in="memory")
    monkeypatch.setattr("manymatch.shards.read.fetch", lambda *_: pytest.fail("a shard is read"))
    assert list(result)
    monkeypatch.setattr("manymatch.training.data.free_memory", lambda: 48 * 4 * 24 * 2 - 1)
    with pytest.raises(ConfigError, match=r"features_in: memory: .* GB are free"):
        training_batches(features_in="memory")


@pytest.mark.parametrize(
    ("setting", "gpu", "host", "place"),
    [
        ("auto", 4.1, 4.1, "cuda"),
        ("auto", 3.9, 4.1, "cpu"),
        ("auto", 3.9, 3.9, None),
        ("device", 1.1, 0, "cuda"),
        ("memory", 9, 1.1, "cpu"),
        ("shards", 9, 9, None),
    ],
)
def test_features_are_on_the_gpu_where_they_fit(tiny, monkeypatch, setting, gpu, host, place):
    """A split of 48 images takes 9,216 bytes; `gpu` and `host` are multiples of that."""
    needed, places = 48 * 4 * 24 * 2, []
    monkeypatch.setattr("manymatch.training.data.free_memory", lambda: int(host * needed))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (int(gpu * needed), 0))
    monkeypatch.setattr(
        "manymatch.training.data.FeatureMemory",
        lambda folder, split, device, *_: places.append(torch.device(device).type),
    )
    features_memory(preset(features_in=setting), tiny.shards, torch.device("cuda"), here=2)
    assert places == ([place] if place else [])


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
def test_beside_a_gpu_a_thread_copies_the_batches(data, monkeypatch):
    """The GPU is a pretended one, whose tensors have shapes alone."""
    done = []

    class Stream:
        def __init__(self, device):
            self.device = device

        def wait_stream(self, other):
            done.append("wait")

        def record_event(self):
            assert threading.current_thread() is not threading.main_thread()
            done.append("copied")
            return len(done)

        def wait_event(self, event):
            done.append("used")

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda *_: None, raising=False)
    for place in ("shards", "memory"):
        done.clear()
        settings = preset(features_in=place, accumulate=2)
        read = list(TrainingBatches(settings, data, device="meta"))
        expected = list(TrainingBatches(settings, data))
        for parts, same in zip(read, expected, strict=True):
            for part, other in zip(parts, same, strict=True):
                assert part.image_ids == other.image_ids and part.features.is_meta
                assert part.features.shape == other.features.shape
        assert done[:2] == ["wait", "copied"] and done[-1] == "used"
        assert done.count("used") == done.count("copied") == 2 * len(read)


@pytest.mark.parametrize("place", ["auto", "shards"])
def test_validation_reads_the_shards_once(data, monkeypatch, place):
    split = ValidationBatches(data, 5, None, preset=preset(features_in=place))
    first = [batch.to("cpu") for batch in split]
    assert len(first) == len(split) == 4
    opened = []
    monkeypatch.setattr(
        "manymatch.shards.read.fetch", lambda *given: opened.append(1) or fetch(*given)
    )
    for batch, same in zip(split, first, strict=True):
        for tensor, before in zip(batch.to("cpu").tensors(), same.tensors(), strict=True):
            assert torch.equal(tensor, before)
    assert len(opened) == (place == "shards")
