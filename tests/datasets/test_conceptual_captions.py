"""Conceptual Captions from small shards, through the two stages."""

import io
import json

import numpy as np
import pytest
from dataset_stages import split_of
from PIL import Image
from tars import tar_bytes

from manymatch.datasets.captions import Ledger
from manymatch.datasets.conceptual_captions import split_of as drawn
from manymatch.util.errors import ConfigError, SourceError


def picture(number=0, kind="JPEG"):
    content = io.BytesIO()
    pixels = np.full((8, 12, 3), number % 256, dtype=np.uint8)
    Image.fromarray(pixels).save(content, format=kind)
    return content.getvalue()


def sample(number, **changed):
    """Return the files of a sample; `changed` replaces files by suffix, or removes them if None."""
    caption, key = f"a photo of  thing {number}\n", f"{number:09d}"
    facts = {"caption": caption, "url": "http://host/x.jpg", "key": key, "status": "success"}
    files = {"jpg": picture(number), "txt": caption.encode(), "json": json.dumps(facts).encode()}
    files |= changed
    return {f"{key}.{ending}": value for ending, value in files.items() if value is not None}


def write_shard(path, members):
    path.write_bytes(tar_bytes(members.items()))


@pytest.fixture
def folder(tmp_path):
    """Two shards of 30 samples each, the other files of img2dataset beside them."""
    folder = tmp_path / "given"
    folder.mkdir()
    for shard in range(2):
        members = {}
        for number in range(30):
            members |= sample(1000 * shard + number)
        write_shard(folder / f"{shard:05d}.tar", members)
        (folder / f"{shard:05d}_stats.json").write_text("{}")
    return folder


@pytest.fixture
def stages(stages_of, monkeypatch):
    # So few samples have no validation images.
    monkeypatch.setattr(Ledger, "close", lambda ledger, name: None)
    return stages_of("conceptual_captions")


def keys(numbers):
    return [f"{number:09d}" for number in numbers]


ALL = keys([*range(30), *range(1000, 1030)])


def test_every_sample_of_every_shard(folder, stages):
    rows = stages({"folder": str(folder), "held_out": 0.1})
    assert [row["image_id"] for row in rows] == ALL
    assert [row["caption_id"] for row in rows] == [f"{key}#0" for key in ALL]
    assert rows[31]["caption"] == "a photo of thing 1001"
    assert rows[31]["file"] == "images/00001/000001001.jpg"
    files = {str(path.relative_to(stages.raw)) for path in stages.raw.rglob("*.*")}
    assert files == {row["file"] for row in rows} | {"captions.tsv"}


def test_splits_are_drawn_by_the_key_alone(folder, stages):
    splits = split_of(stages({"folder": str(folder), "held_out": 0.1}))
    assert splits == {key: drawn(key, 0.1) for key in ALL}
    many = [drawn(str(key), 0.05) for key in range(20_000)]
    for split, share in (("train", 0.9), ("validation", 0.05), ("test", 0.05)):
        assert many.count(split) / len(many) == pytest.approx(share, abs=0.006)


def test_the_limit_is_of_training_images_and_later_shards_are_not_read(folder, stages):
    (folder / "00001.tar").write_bytes(b"damaged")
    rows = stages({"folder": str(folder), "held_out": 0.1, "limit": 20})
    splits = list(split_of(rows).values())
    assert splits.count("train") == 20 and splits[-1] == "train"
    assert [row["image_id"] for row in rows] == ALL[: len(rows)]
    assert len(list(stages.raw.rglob("*.jpg"))) == len(rows)
    stages.refused({"folder": str(folder), "limit": None}, SourceError, "00001.tar")


def test_the_json_gives_the_caption_where_there_is_no_text_and_pictures_may_be_png(folder, stages):
    png = sample(6, json=None, jpg=None, png=picture(6, "PNG"))
    write_shard(folder / "00000.tar", sample(5, txt=None) | png)
    rows = stages({"folder": str(folder), "held_out": 1e-9})
    assert [row["caption"] for row in rows[:2]] == ["a photo of thing 5", "a photo of thing 6"]
    assert rows[1]["file"] == "images/00000/000000006.png"


FAULTS = {
    "no image": {"jpg": None},
    "an image that cannot be read": {"jpg": picture()[:60]},
    "no caption": {"txt": None, "json": None},
    "a caption that is empty, too long or not clean text": {"txt": b" \n"},
    "a caption that is not UTF-8": {"txt": b"caf\xe9"},
    "a damaged json file": {"json": b"{"},
    "an image that was not downloaded": {"json": b'{"status": "failed_to_download"}'},
    "a txt file of more than a million bytes": {"txt": b"word " * 2**18},
}


@pytest.mark.parametrize("reason", FAULTS)
def test_an_unusable_sample_is_left_out_and_counted(folder, stages, capsys, reason):
    whole = sample(1) | sample(2, **FAULTS[reason]) | sample(3)
    write_shard(folder / "00000.tar", whole)
    rows = stages({"folder": str(folder), "held_out": 1e-9})
    assert [row["image_id"] for row in rows[:2]] == keys([1, 3])
    assert len(list((stages.raw / "images" / "00000").iterdir())) == 2
    assert f"32 samples kept, 1 left out; 1 with {reason}" in capsys.readouterr().err


def test_keys_of_earlier_shards_and_keys_that_are_no_words_are_left_out(folder, stages, capsys):
    no_word = {"two words.jpg": picture(), "two words.txt": b"x"}
    write_shard(folder / "00001.tar", sample(3) | sample(77) | no_word)
    rows = stages({"folder": str(folder), "held_out": 1e-9})
    assert [row["image_id"] for row in rows] == keys([*range(30), 77])
    printed = capsys.readouterr().err
    assert "1 with the key of an earlier sample" in printed and "1 with a key that is" in printed


def test_shards_from_the_web_are_fetched_up_to_the_limit(server, stages):
    addresses = [f"{server.url}/{shard:05d}.tar" for shard in range(2)]
    splits = split_of(stages({"shards": addresses, "held_out": 0.1, "limit": 5}))
    assert list(splits.values()).count("train") == 5
    assert set(server.asked) == {"/00000.tar"}


def test_no_usable_sample_is_one_line(folder, stages):
    for shard in range(2):
        write_shard(folder / f"{shard:05d}.tar", sample(shard, jpg=None))
    line = stages.refused({"folder": str(folder)}, SourceError, "no training image in the shards")
    assert "2 with no image" in line


@pytest.mark.parametrize("settings", [{"limit": 0}, {"held_out": 0.5}, {"held_out": 0}])
def test_impossible_settings_are_refused(folder, stages, settings):
    stages.refused({"folder": str(folder), **settings}, ConfigError, next(iter(settings)))
