"""The learning rate over time, against the schedules' definitions."""

from __future__ import annotations

import math
from typing import Any

import pytest

from manymatch.config.preset import Schedule, Training
from manymatch.training.schedule import learning_rate_factor


def factors(epochs: int, steps: int, **schedule: Any) -> list[float]:
    training = Training.model_validate({"epochs": epochs, "schedule": schedule})
    return [learning_rate_factor(step, steps, training) for step in range(epochs * steps)]


def test_constant() -> None:
    assert factors(2, 3, name="constant") == [1.0] * 6


def test_step_falls_after_every_so_many_epochs() -> None:
    result = factors(5, 2, name="step", every=2, factor=0.1)
    assert result == pytest.approx([1, 1, 1, 1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01])


def test_step_falls_at_milestones() -> None:
    result = factors(5, 2, name="step", milestones=(1, 4), factor=0.1)
    assert result == pytest.approx([1, 1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01])


def test_cosine_falls_each_step_to_zero() -> None:
    result = factors(2, 5, name="cosine")
    assert result == pytest.approx([(1 + math.cos(math.pi * n / 10)) / 2 for n in range(10)])
    training = Training.model_validate({"epochs": 2, "schedule": {"name": "cosine"}})
    assert learning_rate_factor(10, 5, training) == pytest.approx(0.0)


def test_cosine_begins_anew() -> None:
    result = factors(5, 2, name="cosine", restarts=(2, 3), factor=0.1, warmup_epochs=0.5)
    whole = [1, *((1 + math.cos(math.pi * n / 3)) / 2 for n in range(3))]
    again = [0.1, 0.05]
    last = [(1 + math.cos(math.pi * n / 4)) / 200 for n in range(4)]
    assert result == pytest.approx([*whole, *again, *last])


def test_cosines_with_a_period_need_not_end_at_zero() -> None:
    """PCME on CUB: T_max 50 in both phases, 10 epochs and 50 epochs, here at a tenth."""
    result = factors(6, 10, name="cosine", restarts=(1,), period=5, factor=1.0)
    first = [(1 + math.cos(math.pi * n / 50)) / 2 for n in range(10)]
    second = [(1 + math.cos(math.pi * n / 50)) / 2 for n in range(50)]
    assert result == pytest.approx([*first, *second])
    assert min(first) > 0.9


def test_a_cosine_stays_at_zero_after_its_period() -> None:
    result = factors(4, 2, name="cosine", period=2)
    assert result == pytest.approx(
        [*((1 + math.cos(math.pi * n / 4)) / 2 for n in range(4)), *[0] * 4]
    )


def test_restarts_that_do_not_rise() -> None:
    with pytest.raises(ValueError, match="ascending order"):
        factors(5, 2, restarts=(3, 3))


@pytest.mark.parametrize("name", ["constant", "step", "cosine"])
def test_warmup_rises_linearly_to_one(name: str) -> None:
    result = factors(4, 4, name=name, warmup_epochs=1.5)
    assert result[:6] == pytest.approx([n / 6 for n in range(1, 7)])
    assert result[6] == pytest.approx(1.0)
    assert max(result) <= 1.0


def test_warmup_as_long_as_training() -> None:
    assert factors(1, 4, name="cosine", warmup_epochs=1.0) == pytest.approx([0.25, 0.5, 0.75, 1.0])
    training = Training(epochs=1, schedule=Schedule(warmup_epochs=1.0))
    assert learning_rate_factor(4, 4, training) == 1.0  # the schedule is asked after the last step
