"""The learning rate over the steps of training, as a factor of the preset's rate."""

from __future__ import annotations

import math

from manymatch.config.preset import Schedule, Training


def learning_rate_factor(step: int, steps_per_epoch: int, training: Training) -> float:
    """The factor at `step` (0-based) of a training with `steps_per_epoch`.

    Warm-up rises linearly to 1. Then `cosine` falls to zero within `period` epochs or, without a
    period, until the next of `restarts` or the last step; at each restart the factor starts anew
    at `factor` of its height. `step` falls by `factor` after every `every` epochs, or after each
    of `milestones`. All epochs count from the start of training.
    """
    schedule = training.schedule
    warmup = schedule.warmup_epochs * steps_per_epoch
    if step < warmup:
        return min(1.0, (step + 1) / warmup)
    if schedule.name == "cosine":
        restarts = [epoch * steps_per_epoch for epoch in schedule.restarts]
        phase = sum(step >= restart for restart in restarts)
        begun = [warmup, *restarts][phase]
        if schedule.period is None:
            length = [*restarts, training.epochs * steps_per_epoch][phase] - begun
        else:
            length = schedule.period * steps_per_epoch
        height: float = schedule.factor**phase
        # The length is 0 if all of training is warm-up; the rate after the last step is asked for.
        return height * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - begun) / (length or 1))))
    if schedule.name == "step":
        return schedule.factor ** _falls(step // steps_per_epoch, schedule)
    return 1.0


def _falls(epochs: int, schedule: Schedule) -> int:
    """The number of times that the rate has fallen after `epochs` whole epochs."""
    if schedule.milestones is None:
        return epochs // schedule.every
    return sum(epochs >= milestone for milestone in schedule.milestones)
