"""The epochs of a training, to be read from top to bottom.

`train.py` builds the method before, and afterwards loads the best weights and saves the model.
"""

import functools
import operator
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from manymatch.batch.batch import Batch
from manymatch.config.preset import Preset
from manymatch.methods.shared.method import Method
from manymatch.networks.layers.batch_norm import share_statistics
from manymatch.training.checkpoints import Checkpoints, History
from manymatch.training.compilation import compile_parts
from manymatch.training.curves import Curves
from manymatch.training.data import Data, TrainingBatches, ValidationBatches
from manymatch.training.gather import encoded, gather
from manymatch.training.machine import Machine, whole_weights
from manymatch.training.optimizer import (
    WeightAverage,
    learning_rate_factor,
    make_optimizer,
    set_learning_rates,
    thaw,
)
from manymatch.training.true_pairs import TruePairs
from manymatch.training.validation import validate
from manymatch.util.errors import DivergenceError
from manymatch.util.progress import say, track

AfterEpoch = Callable[[History], None]
"""Called after each epoch. An exception ends the training, which may be resumed."""


class Losses(nn.Module):
    """A method from a batch to the terms of its loss, in one forward pass, as the strategies of
    several devices need it."""

    def __init__(self, method: Method, true_pairs: TruePairs | None = None) -> None:
        super().__init__()
        self.method, self.true_pairs = method, true_pairs

    def forward(self, parts: tuple[Batch, ...]) -> dict[str, Tensor]:
        """The terms `()` of the loss of the whole batch.

        `parts` make up the share of this process, and `gather` joins the shares of all processes. A
        loss reads only `image_index` of its batch, so that one part can stand for all.
        """
        images, texts, image_index = encoded(self.method, parts)
        with torch.autocast(image_index.device.type, enabled=False):
            rows = self.true_pairs.rows(parts) if self.true_pairs else ()
            images, texts, image_index, *rows_of_all = gather(
                images.float(), texts.float(), image_index, *rows
            )
            left_out = self.true_pairs.among(*rows_of_all) if self.true_pairs else None
            batch = replace(parts[0], image_index=image_index, left_out=left_out)
            return self.method.loss(images, texts, batch)


def fit(
    method: Method,
    preset: Preset,
    data: Data,
    machine: Machine,
    history: History,
    store: Checkpoints,
    curves: Curves,
    end_of_epoch: AfterEpoch | None = None,
) -> None:
    """Train `method`, which has the first weights, to the end of the preset.

    All processes of a training call this function. All of them embed the validation split. The
    first process ranks the split and writes; the others wait for the recalls. If `history` has
    epochs, training resumes from their checkpoint. Each epoch adds a row. A loss that is not finite
    is a `DivergenceError`.
    """
    training = preset.training
    fabric = machine.fabric(training, method)
    fabric.launch()
    rank, world, device = fabric.global_rank, fabric.world_size, fabric.device
    batches = TrainingBatches(preset, data, rank, world, device, here=machine.devices)
    steps = len(batches)
    images_per_batch, graph = training.images_per_batch, method.read_graph
    validation = ValidationBatches(
        data, images_per_batch, graph, rank, world, preset, device, machine.devices
    )

    fabric.to_device(method)
    if training.shared_statistics:
        share_statistics(method)
    average = WeightAverage(method, training.weight_average) if training.weight_average else None
    evaluated = average.method if average else method
    compile_parts(method, training.compile, device, training.epochs * steps, world)
    optimizer: Any = make_optimizer(method, training, fused=machine.precision != "16-mixed")
    losses, optimizer = fabric.setup(Losses(method, data.true_pairs), optimizer)
    state = {"losses": losses, "optimizer": optimizer}
    if average:
        state["average"] = average
    if machine.precision == "16-mixed":
        state["scaling"] = fabric.strategy.precision
    if history.rows:
        fabric.load(store.resumed_from, state, weights_only=True)

    while not history.ended(training.epochs, training.patience):
        epoch, started = len(history.rows), time.monotonic()
        # The seed depends on the epoch, so that an epoch of a resumed run is the same.
        reseed(preset.seed, epoch, rank)
        thaw(optimizer, epoch)
        method.start_epoch(epoch)
        batches.epoch = epoch
        names: list[str] = []
        values: list[Tensor] = []
        title = "" if rank else f"epoch {epoch + 1}/{training.epochs} (batches)"

        for index, parts in enumerate(track(batches, title, steps, passing=True)):
            step = epoch * steps + index
            method.start_step(epoch + (index + 1) / steps)
            set_learning_rates(optimizer, learning_rate_factor(step, steps, training))
            terms = losses(parts)
            optimizer.zero_grad()
            names, loss = list(terms), torch.stack(list(terms.values()))
            fabric.backward(loss.sum())
            if training.clip_norm:
                norm = training.clip_norm
                fabric.clip_gradients(losses, optimizer, max_norm=norm, error_if_nonfinite=False)
            optimizer.step()
            if average:
                average.update(step + 1)
            values.append(loss.detach())

        on_host = torch.stack(values).cpu()  # the only wait for the device
        _refuse_divergence(names, on_host, epoch)
        totals = zip(names, functools.reduce(operator.add, on_host).tolist(), strict=True)
        means = {name: total / steps for name, total in totals}
        means = {"loss": sum(means.values()), **means}
        if average:
            average.copy_rest()
        with whole_weights(losses):
            if world > 1:
                for buffer in evaluated.buffers():  # a CNN's batch norms may differ
                    distributed.broadcast(buffer, 0)
            recalls = validate(evaluated, validation, device, rank)
            recalls, late = fabric.broadcast((recalls, store.late()))
            row = {f"train/{name}": value for name, value in means.items()}
            row |= {f"validation/{name}": value for name, value in recalls.items()}
            last = learning_rate_factor((epoch + 1) * steps - 1, steps, training)
            history.rows.append({**row, "learning_rate": training.optimizer.lr * last})
            if history.improved and rank == 0:
                store.keep(evaluated)
        store.save(fabric, state, history, late, history.ended(training.epochs, training.patience))
        if rank == 0:
            curves.add()
            best = " (best)" if history.improved else ""
            say(
                f"epoch {epoch + 1}/{training.epochs}: loss {means['loss']:.4f}, validation rsum "
                f"{recalls['rsum']:.1f}{best}, {time.monotonic() - started:.1f} s"
            )
        if end_of_epoch is not None:
            end_of_epoch(history)


def reseed(seed: int, epoch: int, rank: int) -> None:
    """Seed every random generator of this process for one epoch."""
    state = np.random.SeedSequence([seed, epoch, rank]).generate_state(1)[0]
    random.seed(int(state))
    np.random.seed(int(state))
    torch.manual_seed(int(state))


def _refuse_divergence(names: list[str], values: Tensor, epoch: int) -> None:
    """Raise a `DivergenceError` that names the first of the `values (steps, terms)` that is not
    finite."""
    faults = (~torch.isfinite(values)).nonzero().tolist()
    if not faults:
        return
    step, term = faults[0]
    remedy = "Lower training.optimizer.lr, or raise training.schedule.warmup_epochs."
    if not epoch + step:
        remedy = "No weight has changed yet: check the features, the loss and training.precision."
    raise DivergenceError(
        f"training diverged: the loss '{names[term]}' is {values[step, term]:g} in epoch "
        f"{epoch + 1}, step {step + 1} of {len(values)}. {remedy}"
    )
