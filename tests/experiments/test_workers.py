"""How many worker processes an experiment has, and which GPUs the workers may use."""

from __future__ import annotations

import pytest
import torch

from manymatch.experiments import workers
from manymatch.experiments.workers import gpus_of, workers_for


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        (torch.device("cpu"), "", []),
        (torch.device("cuda"), "", ["0", "1", "2"]),
        (torch.device("cuda"), "4,7", ["4", "7"]),
        (torch.device("cuda:1"), "4,7", ["7"]),
    ],
)
def test_workers_get_the_gpus_of_the_device(
    device: torch.device, visible: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(workers, "pick_device", lambda _: device)
    assert gpus_of("what the user gave") == expected


def test_the_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert workers_for(None, 20, [], one_a_core=True) == 8
    assert workers_for(None, 20, [], one_a_core=False) == 1
    assert workers_for(None, 20, ["0", "1"], one_a_core=True) == 2
    assert workers_for(3, 20, ["0", "1"], one_a_core=False) == 3
    assert workers_for(3, 2, [], one_a_core=True) == 2
