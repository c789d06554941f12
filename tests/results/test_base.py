"""Result files: a fault is one line with the file, the key and the remedy; bytes are kept."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from manymatch.results.costs import Costs
from manymatch.results.experiments import Experiment, SketchExperiment, SyntheticExperiment
from manymatch.results.machine import Clock, MachineRecord, record
from manymatch.results.metrics import Headline, Metrics, Provenance
from manymatch.results.probes import Clusters, Probes
from manymatch.results.retrieval import Recall, Samples
from manymatch.results.sets import SetDetails
from manymatch.results.tuning import Tuning
from manymatch.util.errors import DataError

REPORTS = Path(__file__).parents[2] / "reports"
KINDS = (Experiment, SketchExperiment, SyntheticExperiment, Clusters, Costs, Probes, Tuning)
OF_RUNS = (Headline, Metrics, Provenance, Samples, SetDetails)
NAMES = {"dataset": "scenes", "preset": "cora", "method": "cora", "split": "test", "seed": 0}
VALUES = NAMES | {"features": "lite0", "setting": "small-scale", "images": 3, "captions": 15}
VALUES |= {"unknown": {"key": [1, 2.5, None]}}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "provenance" / "scenes" / "cora.json"
    Provenance.model_validate(VALUES).write(path)
    return path


def test_unknown_keys_are_kept_and_all_files_of_a_kind_are_read_by_name(path):
    assert Provenance.read(path).to_json() == VALUES
    assert "members" not in path.read_text()  # which nobody set
    for preset in ("a-b", "a"):
        Provenance.model_validate(VALUES | {"preset": preset}).write(path.with_stem(preset))
    results = Provenance.read_all(path.parents[2])
    assert [result.preset for result in results] == ["a", "a-b", "cora"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_text("{"), "JSON"),
        (lambda path: path.write_bytes(b"\xff{}"), "JSON"),
        (lambda path: path.write_text("{}"), "dataset: Field required"),
        (lambda path: path.write_text(path.read_text().replace("15", '"x"')), "captions: "),
        (lambda path: path.write_text(path.read_text().replace('"cora"', '"dive"')), "scenes/dive"),
    ],
)
def test_a_fault_is_one_line_with_the_remedy(path, change, words):
    change(path)
    with pytest.raises(DataError) as fault:
        Provenance.read(path)
    message = str(fault.value)
    assert message.startswith(f"{path}: ") and words in message and "\n" not in message
    assert "Run 'manymatch evaluate scenes cora' again; or" in message
    assert "'manymatch score'" in message  # the command of a result of another program


def test_numbers_have_dotted_names():
    ranks = {"r1": 1.0, "r5": 2.0, "r10": 3.0, "medr": 4.0, "meanr": 5.0}
    recall = Recall.model_validate({"i2t": ranks, "t2i": ranks, "rsum": 12.0, "more": {"x": 7}})
    numbers = recall.numbers()
    assert (numbers["i2t.r1"], numbers["t2i.meanr"], numbers["rsum"]) == (1.0, 5.0, 12.0)
    assert numbers["more.x"] == 7


def test_every_committed_file_has_a_class_which_writes_the_file_as_it_was_read(tmp_path):
    files = [(kind, path) for kind in (*KINDS, *OF_RUNS) for path in kind.paths(REPORTS)]
    of_machine = {*(REPORTS / "machine").rglob("*.json")}  # `results.machine.MachineRecord`
    assert {path for _, path in files} == {*REPORTS.rglob("*.json")} - of_machine
    for kind, path in files:
        copy = tmp_path / path.relative_to(REPORTS)
        kind.read(path).write(copy)
        assert copy.read_bytes() == path.read_bytes(), path


def test_stages_that_end_together_are_all_recorded(tmp_path):
    path, usage = tmp_path / "cora.json", Clock().usage()
    stages = {f"stage {number}" for number in range(8)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda stage: record(path, stage, usage), stages))
    assert set(MachineRecord.read(path).root) == stages
