"""Stages that end together all stand in the record of their result."""

from concurrent.futures import ThreadPoolExecutor

from manymatch.results.machine import Clock, MachineRecord, record


def test_stages_that_end_together_are_all_recorded(tmp_path):
    path, usage = tmp_path / "cora.json", Clock().usage()
    stages = {f"stage {number}" for number in range(8)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda stage: record(path, stage, usage), stages))
    assert set(MachineRecord.read(path).root) == stages
