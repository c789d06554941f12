"""Every run has its own GPUs."""

import threading
import time

import pytest

from manymatch.util.errors import ConfigError
from pipelines import gpus


@pytest.fixture(autouse=True)
def _two_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.delenv(gpus.WANTED, raising=False)
    monkeypatch.setattr(gpus.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(gpus, "_SECONDS_BETWEEN_LOOKS", 0.02)


def claim(said, queue=gpus.QUEUE):
    with gpus.claimed(queue, said.append) as environment:
        return environment.get("CUDA_VISIBLE_DEVICES")


def test_runs_share_no_gpu_and_one_that_waits_for_several_holds_none(monkeypatch):
    lines = []
    with gpus.claimed(gpus.QUEUE, lines.append) as first:
        assert first == {"CUDA_VISIBLE_DEVICES": "4"}
        monkeypatch.setenv(gpus.WANTED, "2")
        waiting = threading.Thread(target=claim, args=(lines,))
        waiting.start()
        while not lines[1:]:
            time.sleep(0.01)
        monkeypatch.setenv(gpus.WANTED, "1")
        assert waiting.is_alive() and claim([]) == "7"
    waiting.join(10)
    assert lines == [
        *("computing on GPU 4", "waiting for 2 of the GPUs 4, 7", "computing on GPU 4, 7"),
    ]


@pytest.mark.parametrize(
    ("queue", "wanted", "seen"),
    [
        ("gpu", "2", "4,7"),
        ("gpu", "0", ""),
        ("mine", None, "4"),
        ("cpu", "2", ""),
        (None, "2", None),
    ],
)
def test_a_run_sees_as_many_as_its_queue_and_its_worker_say(monkeypatch, queue, wanted, seen):
    if wanted is not None:
        monkeypatch.setenv(gpus.WANTED, wanted)
    assert claim([], queue) == seen


def test_anything_but_a_number_is_refused(monkeypatch):
    for text in ("two", "", "-1", "1.5"):
        monkeypatch.setenv(gpus.WANTED, text)
        with pytest.raises(ConfigError, match=f"^MANYMATCH_GPUS={text}: expected a number"):
            claim([])


def test_the_list_is_read_as_cuda_does(monkeypatch):
    for visible, ids in {"-1": [], "0, 1": ["0", "1"], "2,-1,3": ["2"], "": []}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert gpus.present() == ids
    assert claim([]) is None  # there is no GPU
