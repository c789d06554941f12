"""Whoever reads, with however many processes and workers, sees the same batches."""

import io
import json
import multiprocessing
import os
import shutil
import tarfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hashed_files import flipped_bits, reseal
from served_shards import contents
from tiny_data import make_data

from manymatch.batch.vocabulary import tokenize
from manymatch.config.preset import Augmentation
from manymatch.shards.memory import FeatureMemory
from manymatch.shards.read import Loader, batches, classes_of, samples
from manymatch.util.errors import DataError
from manymatch.util.files import sha256

SLOW = pytest.mark.slow
DROPS = Augmentation(region_drop=0.3, word_drop=0.2, object_drop=0.3, phrase_word_mask=0.1)


def caption_features(batches_):
    """What each caption became, and its image's regions, apart from all padding."""
    result = {}
    for batch in batches_:
        for row, caption in enumerate(batch.caption_ids):
            image = batch.image_index[row]
            regions = batch.features[image][batch.region_mask[image]]
            result[caption] = batch.words[row][batch.word_mask[row]].tolist(), regions.tolist()
    return result


@pytest.fixture
def read(tiny, vocabulary):
    return partial(batches, tiny.shards, "train", vocabulary)


def test_without_shuffle_everything_in_table_order(read, tiny, vocabulary):
    batches_ = list(read(7))
    expected = list(samples(tiny.shards, "train"))
    assert [len(batch.image_ids) for batch in batches_] == [7, 7, 7, 3]
    names = [name for batch in batches_ for name in batch.image_ids]
    assert names == [sample.image_id for sample in expected]
    result = caption_features(batches_)
    assert list(result) == [caption.id for sample in expected for caption in sample.captions]
    for sample in expected:
        for caption in sample.captions:
            words = vocabulary.ids(tokenize(caption.text))
            assert result[caption.id] == (words, sample.features.tolist())
    boxes = batches_[1].boxes[1][batches_[1].region_mask[1]]
    assert torch.equal(boxes, torch.from_numpy(expected[8].boxes.copy()))


@pytest.mark.parametrize(("workers", "buffer"), [(1, 1), (2, 2**28)])
def test_workers_change_nothing(read, workers, buffer, monkeypatch):
    """And they live from epoch to epoch, also in a process that was spawned, as here."""
    monkeypatch.setattr("manymatch.shards.read.BUFFER_BYTES", buffer)
    spawned = multiprocessing.get_context("spawn")
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", spawned)

    def plan(epoch):
        settings = {"augmentation": DROPS, "shuffle": (0, epoch)}
        return read(5, **settings)

    loader, living = Loader(plan, workers), set()
    for epoch in (0, 1, 4):
        alone = contents(plan(epoch))
        assert len(alone) == len(plan(epoch)) == 5
        assert contents(loader.epoch(epoch)) == alone
        living |= {worker.pid for worker in multiprocessing.active_children()}
    assert len(living) == workers


def test_features_in_memory_are_those_of_the_shards(read, tiny, monkeypatch):
    monkeypatch.setattr("manymatch.shards.memory._BLOCK", 7)
    memory = FeatureMemory(tiny.shards, "train")

    def plan(epoch, held=None):
        settings = {"captions_per_image": 2, "augmentation": DROPS, "shuffle": (0, epoch)}
        return read(5, **settings, held=held)

    held = Loader(lambda epoch: plan(epoch, memory.samples), 1)
    for epoch in (0, 1):
        expected = list(plan(epoch))
        filled = [memory.fill(batch) for batch in held.epoch(epoch)]
        assert contents(filled) == contents(expected)
        for batch, same in zip(filled, expected, strict=True):
            assert torch.equal(batch.features, same.features)


def test_ranks_share_each_batch(read):
    world = 3
    settings = {"captions_per_image": 2, "augmentation": DROPS, "shuffle": (0, 1)}
    alone = list(read(2 * world, **settings))
    ranks = [list(read(2, **settings, rank=rank, world=world)) for rank in range(world)]
    for together, whole in zip(zip(*ranks, strict=True), alone, strict=True):
        names = [name for part in together for name in part.image_ids]
        assert names == whole.image_ids
        assert caption_features(together) == caption_features([whole])


def test_batches_of_one_image_a_class(read, tiny):
    classes = np.arange(24) % 5
    rows = {sample.image_id: row for row, sample in enumerate(samples(tiny.shards, "train"))}

    def classes_in(epoch, world, rank):
        settings = {"rank": rank, "world": world, "drop_last": True, "classes": classes}
        batches_ = read(4 // world, shuffle=(0, epoch), **settings)
        return [[int(classes[rows[name]]) for name in batch.image_ids] for batch in batches_]

    for epoch in range(3):
        alone = classes_in(epoch, 1, 0)
        assert len(alone) == 6 and all(len(set(batch)) == 4 for batch in alone)
        ranks = zip(classes_in(epoch, 2, 0), classes_in(epoch, 2, 1), strict=True)
        assert [first + second for first, second in ranks] == alone
    with pytest.raises(DataError, match="the images have 5 classes, fewer than the 6"):
        read(6, shuffle=(0, 0), classes=classes)
    with pytest.raises(DataError, match=r"have [12] classes, .* or raise training\.fraction"):
        read(4, shuffle=(0, 0), classes=classes, fraction=0.1)


def test_a_fraction_is_the_same_in_each_epoch_and_place(read, tiny):
    def shown(seed, epoch, **settings):
        stream = read(4, shuffle=(seed, epoch), fraction=0.25, **settings)
        return [name for batch in stream for name in batch.image_ids]

    held = FeatureMemory(tiny.shards, "train", "cpu").samples
    assert len(shown(0, 0)) == 6
    assert shown(0, 1) == shown(0, 1, held=held) != shown(0, 0)
    assert set(shown(0, 0)) == set(shown(0, 1)) != set(shown(1, 0))


def test_the_classes_of_images(tmp_path):
    data = make_data(tmp_path)
    data.write_shards()
    expected = [sample.labels[0] for sample in samples(data.shards, "train")]
    assert classes_of(data.shards, "train").tolist() == expected and len(set(expected)) > 3

    table = pq.read_table(data.captions)
    labels = table.schema.field("labels")
    none = pa.array([[]] * len(table), labels.type)
    pq.write_table(
        table.set_column(table.schema.names.index("labels"), labels, none), data.captions
    )
    data.write_shards()
    with pytest.raises(DataError, match=r"image 'train.0' has 0 classes, and training.one_per"):
        classes_of(data.shards, "train")


@pytest.fixture
def shards(tiny, tmp_path):
    return Path(shutil.copytree(tiny.shards, tmp_path / "shards"))


def read_all(shards, vocabulary, workers=0):
    plan = batches(shards, "train", vocabulary, 4)
    return sum(1 for _ in Loader(lambda _: plan, workers).epoch(0))


def rewrite(shards, name, content):
    """Replace a member of the first training shard."""
    path = shards / "train-000000.tar"
    with tarfile.open(path) as archive:
        members = [(m, archive.extractfile(m).read()) for m in archive]
    with tarfile.open(path, "w") as archive:
        for member, data in members:
            data = content if member.name == name else data
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    reseal(shards)


def test_shards_of_an_older_version_name_the_stage(shards, vocabulary):
    (shards / "SEAL.json").unlink()
    with pytest.raises(DataError, match=r"no seal.*older version. Run the stage 'shards'"):
        read_all(shards, vocabulary)


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        ("train-000001.tar", 0),
        pytest.param("train-000001.tar", 1, marks=SLOW),
        ("index.json", 0),
        ("SEAL.json", 0),
    ],
)
def test_no_flipped_bit_gives_other_batches(shards, vocabulary, name, workers):
    for _ in flipped_bits(shards / name, 4 if workers == 0 else 1):
        with pytest.raises(DataError, match=name) as caught:
            read_all(shards, vocabulary, workers)
        assert "\n" not in str(caught.value)
    assert read_all(shards, vocabulary, workers) == 6


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=SLOW)])
def test_one_process_hashes_each_shard_once(shards, vocabulary, monkeypatch, workers):
    parent, hashed = os.getpid(), []

    def recorded(path):
        assert os.getpid() == parent, "hashed again in a worker"
        hashed.append(path.name)
        return sha256(path)

    monkeypatch.setattr("manymatch.util.seal.sha256", recorded)
    for _ in range(2):
        assert read_all(shards, vocabulary, workers) == 6
    assert sorted(set(hashed)) == sorted(hashed)
    assert {name for name in hashed if name.startswith("train")} == {
        f"train-{number:06d}.tar" for number in range(3)
    }


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def json_with(**changes):
    graph = {"objects": ["dog"], "names": ["dog"], "attributes": [[]], "relations": []}
    captions = [{"id": "c", "text": "a dog", "graph": graph | changes}]
    return json.dumps({"image_id": "a", "file": "", "labels": [], "captions": captions}).encode()


FAR = {"subject": 0, "label": "on", "object": 1}


@pytest.mark.parametrize(
    ("member", "content", "words"),
    [
        ("features.npy", npy(np.array([object()])), "object"),
        ("features.npy", npy(np.zeros((2, 9), np.float16)), "9"),
        ("features.npy", npy(np.zeros((0, 8), np.float16)), "no regions"),
        ("features.npy", npy(np.zeros((2, 8), np.float32)), "float32"),
        ("features.npy", npy(np.zeros((2, 8), np.float16))[:-3], "buffer"),
        ("boxes.npy", npy(np.zeros((9, 4), np.float32)), "boxes"),
        ("json", b"[" * 100_000, ""),
        ("json", json_with().replace(b'"c"', b"7"), "expected text"),
        ("json", b'{"image_id": "a", "file": "", "labels": [], "captions": []}', "no caption"),
        ("json", json_with(objects=[], names=[], attributes=[]), "at least one object"),
        ("json", json_with(attributes=[["a", "b", "c", "d", "e"]]), "more than 4 attributes"),
        ("json", json_with(relations=[FAR]), "does not exist"),
    ],
)
def test_an_unusable_member_is_one_line(shards, vocabulary, member, content, words):
    rewrite(shards, f"00000002.{member}", content)
    with pytest.raises(DataError, match="sample '00000002' cannot be used") as caught:
        read_all(shards, vocabulary)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
