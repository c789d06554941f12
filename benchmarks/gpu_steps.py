"""One training step on the GPU against the CPU's: numbers, waits, time, kernels, memory."""

import copy
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from training_step import (
    CAPTIONS,
    FEATURES,
    WORDS,
    built,
    made_up,
    made_up_settings,
    made_up_words,
    published,
)
from training_step import PRESETS as FOLDER

from manymatch.batch.batch import Batch
from manymatch.batch.wordpieces import NETWORK, AnyVocabulary
from manymatch.config.preset import Preset, read_preset
from manymatch.experiments.costs.timing import seconds, step_seconds, training_step
from manymatch.methods import vocabulary_of
from manymatch.methods.shared.method import Method
from manymatch.networks.device import tf32
from manymatch.training.compilation import compile_parts

Line = tuple[str, float, str, Callable[[float], bool] | None]
"""What was measured, the value, what was wanted in words, and whether a value is good."""
Lines = Iterator[Line]
PRESETS = ["cora_butd_bert", "dive_butd_bert", "pcme_resnet152_bigru", "vsepp_resnet152_gru"]
"""Presets of Flickr30K with what the methods' own presets lack: BERT, a CNN, AdamP."""
COMPARED = 8
"""Images of a step that is compared with the CPU."""
LOSS, BUSY, COSINE, ERROR = 1e-4, 0.9, 0.99, 1e-2
STEPS = 3
"""Steps in which waits are counted."""


def lines(name: str, images: int, folder: Path, device: torch.device, report: Any) -> Lines:
    """The lines of one method or preset. The costliest kernels go to `report.kernels`."""
    preset, vocabulary = prepared(name, folder)
    if "numbers" in report.parts:
        compared = batch_for(preset, COMPARED, vocabulary)
        yield from comparisons(preset, compared, vocabulary, device)
    if device.type != "cuda" or "steps" not in report.parts:
        return
    batch = batch_for(preset, images, vocabulary)
    method = method_of(preset, vocabulary).to(device)
    step = training_step(copy.deepcopy(method), preset.training, device)
    pinned = batch.pin_memory()
    step(pinned.to(device))
    places = waits(
        lambda step=step: [step(pinned.to(device)) for _ in range(STEPS)]  # type: ignore[misc]
    )
    shown = ", ".join(f"{place} x {count}" for place, count in places.most_common(2))
    yield f"waits in {STEPS} steps", places.total(), f"0 {shown}", lambda count: count == 0
    del step  # and the memory of its optimiser
    torch.cuda.reset_peak_memory_stats()
    moved = batch.to(device)
    whole = step_seconds(method, preset.training, [moved] * 8, device)
    yield "step, ms", 1e3 * whole, "", None
    yield "images/s", images / whole, "", None
    yield "memory, GB", torch.cuda.max_memory_allocated() / 1e9, "", None
    kernels, times = kernels_of(training_step(method, preset.training, device), moved)
    report.kernels[name] = [
        {"kernel": kernel, "calls": kernels[kernel], "ms": round(time / 1e3, 3)}
        for kernel, time in times.most_common(25)
    ]
    yield "kernels", kernels.total(), "", None
    busy = times.total() / 1e6 / whole
    yield "busy", busy, f"at least {BUSY}", lambda share: share >= BUSY


def compiled(name: str, images: int, folder: Path, device: torch.device) -> Lines:
    """A step whose parts are compiled (`training.compile: true`)."""
    preset, vocabulary = prepared(name, folder)
    batch = batch_for(preset, images, vocabulary).to(device)
    method = method_of(preset, vocabulary).to(device)
    compile_parts(method, True, device, steps=0)
    step = training_step(method, preset.training, device)
    yield "compiled: first step, s", seconds(partial(step, batch), device), "", None
    times = [seconds(partial(step, batch), device) for _ in range(8)]
    yield "compiled: step, ms", 1e3 * median(times[2:]), "", None
    yield "compiled: kernels", kernels_of(step, batch)[0].total(), "", None


def comparisons(
    preset: Preset, batch: Batch, vocabulary: AnyVocabulary, device: torch.device
) -> Lines:
    """Loss and gradient of the first step against the CPU's in float32, without dropout."""
    fresh = drop_nothing(method_of(preset, vocabulary).train(), batch)

    def first(where: torch.device, reduced: bool, half: bool) -> tuple[float, Tensor]:
        method = copy.deepcopy(fresh).to(where)
        torch.manual_seed(0)
        method.start_epoch(preset.training.epochs)
        method.start_step(preset.training.epochs)
        moved = batch.to(where)
        with DrawnOnCPU(), tf32(reduced):
            with torch.autocast(where.type, torch.bfloat16, enabled=half):
                embedded = method.encode_images(moved), method.encode_texts(moved)
            terms = method.loss(embedded[0].float(), embedded[1].float(), moved)
            loss = torch.stack(list(terms.values())).sum()
            loss.backward()
        gradients = [value.grad for value in method.parameters() if value.grad is not None]
        return float(loss.detach()), torch.cat(
            [value.flatten().float().cpu() for value in gradients]
        )

    loss, gradient = first(torch.device("cpu"), False, False)
    kinds = {"float32": (False, False), "TF32": (True, False), "bfloat16": (False, True)}
    for kind, (reduced, half) in list(kinds.items())[: 3 if device.type == "cuda" else 1]:
        other, direction = first(device, reduced, half)
        difference = abs(other - loss) / abs(loss)
        error = float((direction - gradient).norm() / gradient.norm())
        cosine = float(F.cosine_similarity(direction.double(), gradient.double(), 0))
        if kind == "float32":
            yield f"{kind}: loss differs by", difference, f"at most {LOSS}", lambda x: x <= LOSS
            yield f"{kind}: gradient differs by", error, f"at most {ERROR}", lambda x: x <= ERROR
        else:
            yield f"{kind}: loss differs by", difference, "", None
        good = None if kind == "float32" else lambda x: x >= COSINE
        yield f"{kind}: cosine of gradients", cosine, f"at least {COSINE}", good


def waits(work: Callable[[], object]) -> Counter[str]:
    """The places in which the CPU waits for the GPU, with their numbers."""
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return Counter(
        f"{Path(one.filename).name}:{one.lineno}"
        for one in caught
        if "synchronizing CUDA" in str(one.message)
    )


def kernels_of(step: Callable[[Batch], Tensor], batch: Batch) -> tuple[Counter[str], Counter[str]]:
    """How often each kernel runs in a step, and its microseconds."""
    step(batch)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        step(batch)
        torch.cuda.synchronize()
    count: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for event in recorded.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            name = event.name[:120]
            count[name] += 1
            times[name] += event.device_time_total
    return count, times


class DrawnOnCPU(TorchFunctionMode):
    """Random numbers are the CPU's on every device."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        options = dict(options or {})
        if function in (torch.randn, torch.rand, torch.randint, torch.randperm):
            return function(*arguments, **{**options, "device": "cpu"}).to(options.get("device"))
        if function is torch._sample_dirichlet:  # of a Beta distribution
            return function(arguments[0].cpu()).to(arguments[0].device)
        if function in (torch.randn_like, torch.rand_like):
            like = arguments[0]
            return function(like.cpu(), *arguments[1:], **options).to(like.device)
        return function(*arguments, **options)


def drop_nothing(method: Method, batch: Batch | None = None) -> Method:
    """`method` whose numbers a CPU and a GPU can share: nothing is dropped, and a CNN has the fixed
    statistics of `batch`. Through its random weights differences of 1e-7 would grow to 1e-1 if each
    device took its own."""
    norms = [module for module in method.modules() if isinstance(module, nn.BatchNorm2d)]
    for module in method.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(module, nn.RNNBase | nn.MultiheadAttention):
            module.dropout = 0.0
        if hasattr(module, "config"):  # the attention of a BERT has a number of its own
            module.config.attention_probs_dropout_prob = 0.0  # type: ignore[union-attr]
    for norm in norms:
        norm.momentum = 1.0
    if norms and batch is not None:
        with torch.no_grad():
            method.encode_images(batch)
    for norm in norms:
        norm.eval()
    return method


def prepared(name: str, folder: Path) -> tuple[Preset, AnyVocabulary]:
    """A method's published preset or the preset of that name, with made-up weights and words."""
    words = made_up_words()
    path = FOLDER / f"{name}.yaml"
    if not path.is_file():
        return published(name), words
    preset = read_preset(path)
    bert = folder / "bert"
    if "bert" in path.read_text() and not bert.is_dir():
        _write_bert(bert)
    model = made_up_settings(preset.model, bert)
    captions = [" ".join(words.words)]
    return preset.model_copy(update={"model": model}), vocabulary_of(
        preset.method, model, words, captions
    )


def _write_bert(folder: Path) -> None:
    """A BERT-base of random weights that knows the made-up words."""
    from transformers import BertConfig, BertModel

    config = BertConfig()
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{n}" for n in range(WORDS))]
    folder.mkdir()
    state = BertModel(config, add_pooling_layer=False).state_dict()
    save_file(
        {key: value.contiguous() for key, value in state.items()}, folder / "model.safetensors"
    )
    values = {key: getattr(config, key) for key in NETWORK}
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **values}))
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


def method_of(preset: Preset, vocabulary: AnyVocabulary) -> Method:
    return built(preset, vocabulary, 3 if _side(preset) else FEATURES)


def batch_for(preset: Preset, images: int, vocabulary: AnyVocabulary) -> Batch:
    """A made-up batch: regions with their features, or pixels if the preset has a CNN."""
    captions = preset.training.captions_per_image or CAPTIONS
    return made_up(images, captions, vocabulary, side=_side(preset))


def _side(preset: Preset) -> int:
    return int(preset.features.removeprefix("pixels")) if "pixels" in preset.features else 0
