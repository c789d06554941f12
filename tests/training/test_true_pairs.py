"""`training.negatives: oracle` leaves out exactly the true pairs of other images."""

import json
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from forked import in_processes
from small_methods import small
from tiny_run import preset

from manymatch.config.preset import Preset
from manymatch.datasets.base import RELEVANCE
from manymatch.datasets.captions import write_captions
from manymatch.datasets.scenes import Scenes, ScenesSettings
from manymatch.scenes.forms import Form, Pattern
from manymatch.training.data import TrainingBatches
from manymatch.training.loop import Losses
from manymatch.training.true_pairs import TruePairs
from manymatch.util.errors import ConfigError


@dataclass(frozen=True)
class Names:
    """What `numbered` reads of a batch, and what it adds."""

    image_ids: list[str]
    caption_ids: list[str]
    image_rows: torch.Tensor | None = None
    caption_rows: torch.Tensor | None = None


def test_the_pairs_are_those_of_the_generator(tmp_path):
    """18,000 pairs, whose truth is searched one by one."""
    raw, table = tmp_path / "scenes", tmp_path / "relevance.parquet"
    raw.mkdir()
    settings = ScenesSettings(train=60, validation=2, test=0, image_size=32)
    Scenes().download(settings, raw)
    write_captions("scenes", raw, tmp_path / "c.parquet", tmp_path / "v.json", table, 1, "scenes")
    scenes, captions = (
        [json.loads(line) for line in (raw / name).read_text().splitlines()]
        for name in ("scenes.jsonl", "captions.jsonl")
    )
    scenes = [row for row in scenes if row["split"] == "train"]
    images = [row["image_id"] for row in scenes]
    captions = [row for row in captions if row["image_id"] in images]
    patterns = [Pattern(Form.from_dict(row["form"])) for row in captions]
    relations = [frozenset(map(tuple, row["relations"])) for row in scenes]
    expected = [
        [
            row["image_id"] != scene["image_id"]
            and pattern.true_of(scene["background"], scene["objects"], related)
            for row, pattern in zip(captions, patterns, strict=True)
        ]
        for scene, related in zip(scenes, relations, strict=True)
    ]
    known = TruePairs(table, images)
    batch = known.numbered(Names(images, [row["caption_id"] for row in captions]))
    is_true = known.among(*known.rows([batch]))
    assert is_true.numel() == 18_000 and is_true.sum() > 100
    assert is_true.tolist() == expected


@pytest.fixture
def relevance(tiny, tmp_path):
    """Each third caption of the tiny data's training images is true of the image before, too."""
    rows = pq.read_table(tiny.captions).to_pylist()
    trained = [row for row in rows if row["split"] == "train"]
    pairs = [(trained[k - 3]["image_id"], row["caption_id"]) for k, row in enumerate(trained)][3::3]
    path = tmp_path / "relevance.parquet"
    columns = [list(column) for column in zip(*pairs, strict=True)]
    pq.write_table(pa.table(columns, schema=RELEVANCE), path)
    return path


@pytest.mark.parametrize("name", ["vse_infinity", "pcme", "cora"])
def test_processes_and_parts_of_a_batch_know_the_pairs_of_the_whole(
    name, data, built, relevance, tmp_path
):
    images = [f"train.{number}" for number in range(48)]
    known = replace(data, true_pairs=TruePairs(relevance, images))

    def terms(known, rank=0, world=1, parts=1):
        training = {"images_per_batch": 24, "captions_per_image": 2, "accumulate": parts}
        settings = {"method": name, "features": "grid", "model": small(name), "training": training}
        stream = TrainingBatches(Preset.model_validate(settings), known, rank, world)
        method = built(name).eval()
        torch.manual_seed(0)
        with torch.no_grad():
            batch = next(iter(stream))
            return Losses(method, known.true_pairs)(batch)

    expected = terms(known)
    if name != "pcme":  # draws samples
        plain = terms(data)
        assert all(
            plain[key] != value
            for key, value in expected.items()
            if key in ("contrastive", "info_nce", "triplet")
        )
        torch.testing.assert_close(terms(known, parts=3), expected)
    for found in in_processes(2, lambda rank: terms(known, rank, 2), tmp_path):
        torch.testing.assert_close(found, expected)


def test_a_training_without_known_pairs_is_refused(new_run, tmp_path):
    run = new_run("run")
    with pytest.raises(ConfigError, match=r"no relevance table.*'captions'"):
        run.train(preset(negatives="oracle"))
    table = tmp_path / "none.parquet"
    pq.write_table(pa.table([["v"], ["c"]], schema=RELEVANCE), table)
    with pytest.raises(ConfigError, match=r"none\.parquet has no pairs of training images"):
        TruePairs(table, ["train.0"])
