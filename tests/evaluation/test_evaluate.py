"""The stage on shards of a few made-up images, with untrained models."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_sets  # noqa: F401  registers the method
from hashed_files import edit
from tiny_data import TinyData, make_data
from untrained import save_untrained

from manymatch.config.galleries import IMAGES
from manymatch.config.layout import ResultFiles
from manymatch.config.preset import Preset
from manymatch.datasets.base import RELEVANCE
from manymatch.evaluation import evaluate as stage
from manymatch.evaluation.embedded_model import setting_of
from manymatch.evaluation.split_results import EvaluationOptions
from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import Ranked
from manymatch.results.retrieval import Samples
from manymatch.results.sets import SetDetails
from manymatch.shards.read import read_index
from manymatch.util.errors import CheckpointError, DataError, ManyMatchError


@dataclass(frozen=True)
class _Stage:
    data: TinyData
    out: Path
    split: str = "test"
    captions: Path | None = None
    votes: Path | None = None

    @property
    def relevance(self):
        return self.out / "relevance.parquet"

    def __call__(self):
        stage.evaluate(
            self.out / "models" / "untrained",
            self.data.shards,
            ResultFiles.inside(self.out),
            EvaluationOptions(self.relevance, self.captions, self.split, 5, 3, self.votes),
        )
        return json.loads((self.out / "results.json").read_text())

    def judge(self, *pairs):
        rows = [{"image_id": image, "caption_id": caption} for image, caption in pairs]
        schema = RELEVANCE.with_metadata({"complete": "true"})
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), self.relevance)


@pytest.fixture
def run(request, tmp_path):
    (tmp_path / "data").mkdir()
    data = make_data(tmp_path / "data", variable=True)
    data.write_shards()
    name = getattr(request, "param", "vsepp")
    save_untrained(tmp_path / "models" / "untrained", data, name, seed=7)
    made = _Stage(data, tmp_path)
    made.judge()
    return made


@pytest.mark.parametrize("run", ["vsepp", "tiny_sets"], indirect=True)
def test_writes_what_the_report_reads_each_time_the_same(run):
    values = run()
    Metrics.model_validate(values)
    assert "multi" not in values
    recalls = [values[way][f"r{cut}"] for way in ("i2t", "t2i") for cut in (1, 5, 10)]
    assert values["rsum"] == pytest.approx(sum(recalls), abs=0.05)

    record = Provenance.model_validate_json((run.out / "provenance.json").read_text())
    assert (record.preset, record.split, record.seed) == ("untrained", "test", 7)
    assert (record.images, record.captions) == (8, 24)
    shown = Samples.model_validate_json((run.out / "run" / "samples.json").read_text())
    assert all(3 <= len(queries) <= 6 for queries in (shown.images, shown.captions))
    for name, queries in (("i2t", 8), ("t2i", 24)):
        lines = (run.out / "run" / f"{name}.trec").read_text().splitlines()
        assert len(lines) == 5 * queries
        assert {len(line.split()) for line in lines} == {6}
        assert len({line.split()[0] for line in lines}) == queries
        ranked = Ranked(run.out / "run" / f"{name}.parquet")
        assert 100 * (ranked.ranks == 1).mean() == pytest.approx(values[name]["r1"], abs=0.005)
        assert [line.split()[4] for line in lines] == [f"{x:.9g}" for x in ranked.scores.flat]

    files = [run.out / "metrics.json", *sorted((run.out / "run").iterdir())]
    first = [path.read_bytes() for path in files]
    run()
    assert [path.read_bytes() for path in files] == first

    path = run.out / "run" / "sets.json"
    embedded = Metrics.model_validate(values).sets
    if "tiny_sets" not in (run.out / "models" / "untrained" / "preset.json").read_text():
        assert embedded is None
        assert not path.exists()
        return
    assert list(embedded.images.rsum_of) == ["1", "2", "3"]
    shown = SetDetails.model_validate_json(path.read_text())
    assert len(shown.caption_maps) == 3
    assert shown.image_maps == []  # the made-up features have no boxes


def test_judgments_add_multi_match(run):
    run.judge(("test.0", "test.1#0"), ("test.3", "test.1#0"), ("train.0", "test.1#0"))
    multi = {"map_at_r", "r_precision", "r1", "others", "by_positives"}
    assert set(run()["multi"]["t2i"]) == multi


def test_judged_pairs_of_unknown_ids_are_told(run, capsys):
    votes = run.out / "votes.csv"
    votes.write_text(
        "image_id,caption_id,relevant,annotator\n"
        "test.0,test.1#0,true,x\ntest.3, test.1#0,true,x\ntest.9,c,true,x\n"
    )
    assert "multi" in replace(run, votes=votes)()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if str(votes) in line]
    assert "2 of 3" in line and "('test.3', ' test.1#0')" in line


def test_the_data_sets_own_protocols_are_applied(run, capsys):
    edit(run.data.shards / "index.json", dataset="cub")
    values = replace(run, captions=run.data.captions)()
    assert set(values["classes"]["all_classes"]["i2t"]) == {"r_precision", "r1"}
    without = run()
    assert "classes" not in without
    assert "cub: left out classes: " in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"features": "resnet152"}, {"width": 9}])
def test_shards_of_other_features_are_refused(run, change):
    edit(run.data.shards / "index.json", **change)
    with pytest.raises(CheckpointError, match="trained on") as fault:
        run()
    assert "\n" not in str(fault.value)
    assert not (run.out / "metrics.json").exists()


def test_unknown_split_and_missing_relevance(run):
    with pytest.raises(ManyMatchError, match="did you mean 'test'"):
        replace(run, split="tset")()
    run.relevance.unlink()
    with pytest.raises(DataError, match="relevance"):
        run()


def test_failed_run_keeps_the_earlier_results(run):
    run()
    earlier = {path: path.read_bytes() for path in (run.out / "run").iterdir()}
    run.relevance.write_bytes(b"broken")
    with pytest.raises(DataError):
        run()
    assert {path: path.read_bytes() for path in (run.out / "run").iterdir()} == earlier


def test_reproduced_is_what_is_of_all_the_papers_images(run):
    preset = Preset(method="vsepp", features="lite0", setting="reproduced")
    small, split = read_index(run.data.shards), read_index(run.data.shards).split("test")
    whole = {
        name: split.model_copy(update={"images": count}) for name, count in IMAGES["coco"].items()
    }
    assert setting_of(preset, small.model_copy(update={"dataset": "coco"})) == "small-scale"
    index = small.model_copy(update={"dataset": "coco", "splits": whole})
    assert setting_of(preset, index) == "reproduced"
    assert setting_of(preset.model_copy(update={"setting": "small-scale"}), index) == "small-scale"
