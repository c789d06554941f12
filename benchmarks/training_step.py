"""What a training step of each method spends its time on: the costliest operations.

    python benchmarks/training_step.py                  # all of pictures, on a GPU if there is one
    python benchmarks/training_step.py dive maxmatch

The step has the size of the papers: 128 images of 36 regions (2048), made-up captions of 8 to 16
words, D = 1024, bi-GRU, and the settings of the method's published preset, if there is one. A step
of 8 images warms up, one is profiled. An operation's time is what it takes itself; on a GPU its
kernels'. All that a bi-GRU is made of on a CPU, forward and backward, counts as one operation. `!`
marks one that takes over 30% and is neither a matrix product nor the GRU.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from measuring import arguments
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import profile

from manymatch.batch.batch import Batch
from manymatch.batch.collate import collate, whole_item
from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.batch.scene_graph import Relation, SceneGraph
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Preset, read_preset
from manymatch.experiments.costs.timing import seconds, training_step
from manymatch.methods import METHODS, build_method
from manymatch.methods.shared.method import Method
from manymatch.training.run_context import deterministic

PRESETS = Path(__file__).parents[1] / "presets" / "flickr30k"
REGIONS, FEATURES, CAPTIONS, WORDS = 36, 2048, 5, 8_000
MATRIX_PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}
METHODS_OF_IMAGES = [name for name in METHODS if name not in ("swamp_video", "pretrained")]
"""The methods with such a step: not that of one vector a clip, nor the one that learns nothing."""
GRU = "GRU"
LIMIT = 0.3


class Cost(NamedTuple):
    """An operation, on whose largest inputs it is called, how often, and its part of the step."""

    operation: str
    shapes: str
    calls: int
    share: float


def main() -> None:
    options = arguments(
        __doc__, {"methods": METHODS_OF_IMAGES}, images=128, show=(3, "operations of each method")
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    vocabulary = made_up_words()
    for name in options.methods:
        preset = published(name)
        captions = preset.training.captions_per_image or CAPTIONS
        batches = [made_up(n, captions, vocabulary).to(device) for n in (8, options.images)]
        events, took = profiled(preset, vocabulary, batches, device)
        print(
            f"{name}: {options.images} images, {len(batches[1].image_index)} captions, {took:.1f} s"
        )
        for cost in costs(events, device)[: options.show]:
            print(_line(cost), flush=True)


def profiled(
    preset: Preset, vocabulary: Vocabulary, batches: list[Batch], device: torch.device
) -> tuple[list[FunctionEvent], float]:
    """What happened in the step on the second batch, and its seconds; the first warms up."""
    step = training_step(built(preset, vocabulary).to(device), preset.training, device)
    with deterministic(preset.training, device):
        step(batches[0])
        with profile(record_shapes=True) as recorded:
            took = seconds(lambda: step(batches[1]), device)
    return recorded.events(), took


def published(method: str) -> Preset:
    """The preset on region features with a bi-GRU, its GloVe file replaced by learned vectors of
    the same size; a method without one has the defaults."""
    path = PRESETS / f"{method}_butd_bigru.yaml"
    if path.is_file():
        preset = read_preset(path)
        return preset.model_copy(update={"model": made_up_settings(preset.model)})
    model = {} if method == "vsepp" else {"text": {"word_vectors": "learned"}}
    return Preset(method=method, features="butd", model=model)


def made_up_settings(settings: Any, bert: Path | None = None) -> Any:
    """Settings of a model without files: learned vectors for GloVe's, random weights for a CNN, and
    the BERT in the folder `bert`."""
    if not isinstance(settings, dict):
        return "learned" if settings == "glove" else settings
    changes = {"bert": {"weights": str(bert)}, "cnn": {"weights": "random"}}
    return {
        key: made_up_settings(value, bert) | changes[key]
        if key in changes
        else made_up_settings(value, bert)
        for key, value in settings.items()
        if key != "glove_file"
    }


def made_up_words(count: int = WORDS) -> Vocabulary:
    return Vocabulary([*Vocabulary.SPECIAL, *(f"word{number}" for number in range(count))])


def built(preset: Preset, vocabulary: AnyVocabulary, width: int = FEATURES) -> Method:
    """The method of a preset with fresh weights, the same at every call."""
    torch.manual_seed(0)
    return build_method(preset.method, preset.model, vocabulary=vocabulary, feature_width=width)


def made_up(
    images: int,
    captions: int,
    vocabulary: AnyVocabulary,
    regions: int = REGIONS,
    width: int = FEATURES,
    side: int = 0,
) -> Batch:
    """A batch of random features and captions; a caption's graph has four objects, two
    attributes and two relations. With `side`, images are as many random pixels a side."""
    rng, numbering = np.random.default_rng(0), Numbering(vocabulary)
    random_words = random.Random(0)
    return collate(
        [
            whole_item(
                str(image),
                rng.integers(0, 256, (side * side, 3), np.uint8)
                if side
                else rng.standard_normal((regions, width), np.float32),
                captions=[numbering.caption(caption(random_words)) for _ in range(captions)],
            )
            for image in range(images)
        ]
    )


def caption(random_words: random.Random) -> CaptionEntry:
    # Low numbers are common words, as in captions: products of two even chances.
    words = [
        f"word{int(WORDS * random_words.random() * random_words.random())}"
        for _ in range(random_words.randint(8, 16))
    ]
    objects = tuple(words[:4])
    attributes = ((words[4],), (words[5],), (), ())
    relations = (Relation(0, words[6], 1), Relation(2, words[7], 3))
    graph = SceneGraph(objects, objects, attributes, relations)
    return CaptionEntry("made up", " ".join(words), graph)


def costs(events: list[FunctionEvent], device: torch.device) -> list[Cost]:
    """All operations, the costliest first."""
    gru_ids = {event.id for event in _gru_events(events)}
    spent: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    largest: dict[str, Counter[str]] = {}
    for event in events:
        itself = (
            event.self_device_time_total if device.type == "cuda" else event.self_cpu_time_total
        )
        name = GRU if event.id in gru_ids else event.name
        spent[name] += itself
        calls[name] += 1
        largest.setdefault(name, Counter())[str(event.input_shapes)] += itself
    whole = spent.total()
    return [
        Cost(name, largest[name].most_common(1)[0][0], calls[name], time / whole)
        for name, time in spent.most_common()
    ]


def _gru_events(events: list[FunctionEvent]) -> Iterator[FunctionEvent]:
    """Everything under a GRU's call, and the backward passes of that."""
    forward = [event for event in events if event.name == "aten::gru"]
    inside = [event for root in forward for event in _descendants(root)]
    yield from inside
    numbers = {event.sequence_nr for event in inside if event.sequence_nr >= 0}
    for event in events:
        if event.name.startswith("autograd::engine") and event.sequence_nr in numbers:
            yield from _descendants(event)


def _descendants(event: FunctionEvent) -> Iterator[FunctionEvent]:
    yield event
    for child in event.cpu_children:
        yield from _descendants(child)


def _line(cost: Cost) -> str:
    over = cost.share > LIMIT and cost.operation not in {*MATRIX_PRODUCTS, GRU}
    shapes = "" if cost.operation == GRU else cost.shapes
    return (
        f"  {cost.share:6.1%} {'!' if over else ' '} {cost.operation:38}"
        f"{cost.calls:6} calls  {shapes}"
    )


if __name__ == "__main__":
    main()
