"""A run of an experiment on presets is a training and an evaluation, and knows what it reads."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from small_methods import SMALL_SETS
from tiny_checkout import PRESET

from manymatch.config.layout import ResultFiles
from manymatch.config.preset import read_preset
from manymatch.evaluation.evaluate import evaluate
from manymatch.evaluation.split_results import EvaluationOptions
from manymatch.experiments.engine import perform, run_of
from manymatch.experiments.grid import points
from manymatch.reporting.sections.experiments import table
from manymatch.results.experiments import Experiment
from manymatch.training.train import train
from manymatch.util.errors import DataError


def record(checkout, **plan):
    options = {"keep": plan.pop("keep", False)}
    written = perform(checkout.experiment(checkout.plan(**plan), **options))
    assert written.parts[-2:] == ("tiny", "what.json")
    return json.loads(written.read_text())


def test_every_point_is_trained_and_evaluated_as_the_stages_do(checkout, worked):
    written = record(checkout, over={"size": [4]}, seeds=[0, 1], about="How wide?", keep=True)
    assert worked == ["size=4, seed 0", "size=4, seed 1"]
    (point,) = written["points"]
    assert (point["settings"], point["resolved"]["model"]["size"]) == ({"size": 4}, 4)
    assert written["keys"] == ["size"] and written["about"] == "How wide?"
    assert (written["images"], written["captions"], written["split"]) == (8, 24, "test")
    run = point["runs"][1]
    assert (run["seed"], run["epochs"]) == (1, 2) and run["seconds"] > 0
    i2t, t2i = run["hits"]["i2t"], run["hits"]["t2i"].split()
    assert (len(i2t), [*map(len, t2i)]) == (8, [3] * 8)
    means = sum(map(int, i2t)) / 8 + sum(map(int, "".join(t2i))) / 24
    assert run["metrics"]["rsum"] == pytest.approx(100 * means, abs=0.01)

    presets = {read_preset(path / "model" / "preset.json").seed: path for path in checkout.runs}
    preset = read_preset(presets[1] / "model" / "preset.json")
    layout, out = checkout.layout, checkout.layout.root / "by-hand"
    shards = layout.shards("tiny", "grid")
    places = [out / name for name in ("model", "curves", "checkpoints")]
    train(preset, shards, layout.vocabulary("tiny"), *places)
    files = ResultFiles.inside(out)
    evaluate(places[0], shards, files, EvaluationOptions(layout.relevance("tiny")))
    assert run["metrics"] == json.loads(files.full.read_text())
    provenance = json.loads(files.provenance.read_text())
    assert run["checkpoint_sha256"] == provenance["checkpoint_sha256"]


def test_sets_are_measured_as_a_whole_and_without_one_of_their_elements(checkout, worked):
    preset = {**PRESET, "method": "dive", "model": SMALL_SETS}
    (checkout.layout.presets / "tiny" / "dive.yaml").write_text(yaml.safe_dump(preset))
    plan = {"preset": None, "points": {"sets": {"preset": "dive"}, "vector": {"preset": "vsepp"}}}
    asked = {"images": [[1, 3, 4]], "texts": [[2, 3, 4]]}
    written = record(checkout, **plan, elements=asked)
    sets, vector = (point["runs"][0] for point in written["points"])
    assert "sets" not in vector["metrics"] and "pairs" not in vector
    assert sum(map(sum, sets["pairs"]["share"])) == pytest.approx(1, abs=1e-3)
    for side, name in (("images", "1+3+4"), ("texts", "2+3+4")):
        measured = sets["metrics"]["sets"][side]
        assert measured["log_circular_variance"] < 0
        assert {*measured["rsum_of"]} == {*"1234", name}
        assert 0 < measured["rsum_of"][name] <= 600
    heads = [column.heading for column in table(Experiment.model_validate(written)).columns]
    assert {"rsum, image elements 1+3+4 only", "rsum, caption elements 2+3+4 only"} <= {*heads}


def run_now(checkout, **options):
    experiment = checkout.experiment(checkout.plan(over={"size": [4]}), **options)
    (point,) = points(experiment.plan)
    return run_of(experiment, point, 0)


def test_data_and_values_decide_which_run_it_is(checkout):
    layout, first = checkout.layout, run_now(checkout).folder
    preset = layout.presets / "tiny" / "vsepp.yaml"
    stated = yaml.safe_load(preset.read_text())
    in_reverse = {**stated, "model": dict(reversed(stated["model"].items()))}
    preset.write_text(yaml.safe_dump(in_reverse, sort_keys=False))
    assert run_now(checkout).folder == first  # keys have no order
    seen = {first}
    index = layout.shards("tiny", "grid") / "SEAL.json"
    for path in (layout.vocabulary("tiny"), layout.captions("tiny"), index):
        path.write_bytes(path.read_bytes() + b"\n")
        seen.add(run_now(checkout).folder)
    judged = pq.read_table(layout.relevance("tiny"))
    row = pa.Table.from_pylist([{"image_id": "test.2", "caption_id": "test.3#0"}], judged.schema)
    pq.write_table(pa.concat_tables([judged, row]), layout.relevance("tiny"))
    seen.add(run_now(checkout).folder)
    assert len(seen) == 5
    layout.vocabulary("tiny").unlink()
    with pytest.raises(DataError, match="Run the stage 'captions'"):
        run_now(checkout)


def test_another_machine_takes_runs_from_the_files_of_results(checkout, worked):
    """Features may have other last bits there, but captions must be the same."""
    layout = checkout.layout
    record(checkout, over={"size": [4]})
    shutil.rmtree(layout.experiment_runs("presets"))
    index = layout.shards("tiny", "grid") / "SEAL.json"
    index.write_bytes(index.read_bytes() + b"\n")
    plan = checkout.plan(over={"size": [4, 8]})
    worked.clear()
    perform(checkout.experiment(plan, "other", extend=True))
    assert worked == ["size=8, seed 0"]
    captions = layout.captions("tiny")
    captions.write_bytes(captions.read_bytes() + b"\n")
    experiment = checkout.experiment(plan)
    assert experiment.recorded([run_of(experiment, point, 0) for point in points(plan)]) == []
