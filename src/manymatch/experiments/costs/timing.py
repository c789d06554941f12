"""Wall-clock times of any work, of a training step and of a ranking, including the work that a GPU
does asynchronously; the operations of a similarity; the hardware."""

import copy
import math
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.config.preset import Training
from manymatch.evaluation.protocols.ranked_split import part
from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.embed import Embedded
from manymatch.model.scores import Score
from manymatch.networks.device import tf32
from manymatch.training.machine import training_precision
from manymatch.training.operations import multiply_adds
from manymatch.training.optimizer import make_optimizer
from manymatch.training.run_context import deterministic

_DEPTH, _FIRST_IMAGES = 10, 16
_Item = TypeVar("_Item")


def seconds(work: Callable[[], Any], device: torch.device) -> float:
    """The seconds until `device` has finished `work`."""
    _wait(device)
    started = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - started


def median_seconds(
    work: Callable[[_Item], Any], items: Iterable[_Item], device: torch.device, warm_up: int = 3
) -> float:
    """The median over `items` of the seconds that `work` takes. The first `warm_up` items are left
    out; there must be more items than that."""
    times = [seconds(lambda item=item: work(item), device) for item in items]  # type: ignore[misc]
    return median(times[warm_up:])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def hardware(device: torch.device) -> str:
    """The device that torch uses: "NVIDIA A100", or "Intel Xeon ..., 2 threads"."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    file, threads = Path("/proc/cpuinfo"), torch.get_num_threads()
    lines = file.read_text().splitlines() if file.is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    model = next(models, "") or platform.processor() or platform.machine()
    return f"{model}, {threads} thread{'s' if threads > 1 else ''}"


def step_seconds(
    method: Method, training: Training, batches: Sequence[Batch], device: torch.device
) -> float:
    """The median over `batches`, which are on `device` already; the first two are left out. The
    choice of algorithms is that of training. `method` is not changed."""
    step = training_step(copy.deepcopy(method), training, device)
    with deterministic(training, device):
        return median_seconds(step, batches, device, warm_up=2)


def training_step(
    method: Method, training: Training, device: torch.device
) -> Callable[[Batch], Tensor]:
    """`step(batch)` trains `method` as in a late epoch: all parameters, all losses at full weight.
    It returns the loss. The precision is the preset's, except for 16-bit floats, whose gradients
    would need scaling."""
    method.train()
    method.start_epoch(training.epochs)
    method.start_step(training.epochs)
    optimizer = make_optimizer(method, training, fused=True)
    mixed = training_precision(device.type, training.precision) == "bf16-mixed"

    @tf32(mixed)
    def step(batch: Batch) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            images, texts = method.encode_images(batch), method.encode_texts(batch)
        terms = method.loss(images.float(), texts.float(), batch)
        optimizer.zero_grad()
        loss = torch.stack(list(terms.values())).sum()
        loss.backward()
        if training.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(method.parameters(), training.clip_norm)
        optimizer.step()
        return loss.detach()

    return step


def rank_seconds(
    method: Method, split: Embedded, device: torch.device, most_seconds: float
) -> tuple[float, int | None]:
    """The seconds of the ranking of a split in both directions, and `TestCost.scaled_from`. The
    first images show how long all images would take. If that is longer than `most_seconds`, only as
    many images are ranked as take about that long."""

    def ranked(images: int) -> float:
        """Seconds for all pairs of the split, scaled from the first `images`."""
        first = part(split, slice(0, images))
        measured = seconds(
            lambda: rank(method.score, *first.gallery, _DEPTH, t2i_score=method.t2i_score), device
        )
        pairs = len(split.images) * len(split.texts)
        return measured * pairs / (len(first.images) * len(first.texts))

    first = min(_FIRST_IMAGES, len(split.images))
    expected = ranked(first)
    if expected <= most_seconds:
        return ranked(len(split.images)), None
    images = max(first, int(len(split.images) * math.sqrt(most_seconds / expected)))
    return ranked(images), images


def similarity_operations(score: Score, image: Embeddings, text: Embeddings) -> int:
    """`multiply_adds` of `score` for one image and one text, of the code that training uses:
    torch's counter does not see the in-place products of the fast code for retrieval."""
    with torch.enable_grad():
        # Copies can have a gradient, unlike tensors of inference mode.
        sides = [side.map(lambda part: part.detach().clone()) for side in (image, text)]
        for side in sides:
            side.vectors.requires_grad_()
        return multiply_adds(lambda: score(*sides))
