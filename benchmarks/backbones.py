"""A ViT-B/16 and a Swin-B with random weights, frozen and in the loop, against the bare models.

Pictures of 640 x 480 pixels as JPEG are decoded, resized and read by a frozen model (`kind: hf`);
the bare model reads as many pixels that are there already. In the loop a step is forward and
backward on stored pixels, in float32 and in bfloat16. Run on one core

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/backbones.py
"""

import io
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers
from measuring import arguments, compare, ratio_of
from PIL import Image

from manymatch.config.params import Extraction
from manymatch.features import build_backbone
from manymatch.features.backbone import Backbone, Sources
from manymatch.features.extractors import Extractor
from manymatch.features.image_list import Picture
from manymatch.networks.backbones.learning import Learning, set_learning
from manymatch.networks.encoders.hub_image import HubImageEncoder, HubImageSettings

SIDE = 224
MODELS: dict[str, Callable[[], Any]] = {
    "ViT-B/16": lambda: transformers.ViTModel(transformers.ViTConfig(image_size=SIDE)),
    "Swin-B": lambda: transformers.SwinModel(
        transformers.SwinConfig(
            embed_dim=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32], image_size=SIDE
        )
    ),
}
PROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": SIDE, "width": SIDE},
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
}


def main() -> None:
    options = arguments(
        __doc__,
        {"models": list(MODELS)},
        pictures=8,
        rounds=3,
        train=("all", "of the network in the loop"),
        dtypes=["float32", "bfloat16"],
    )
    rng = np.random.default_rng(0)
    for name in options.models:
        made = MODELS[name]
        with TemporaryDirectory() as folder:
            torch.manual_seed(0)
            model = made().eval()
            pixels = rng.integers(0, 256, (options.pictures, SIDE * SIDE, 3), dtype=np.uint8)
            frozen(name, saved(model, Path(folder)), model, options)
            in_the_loop(name, folder, model, torch.from_numpy(pixels), options)


def saved(model: Any, folder: Path) -> Backbone:
    """The frozen backbone of `model`, which is written to `folder`."""
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    backbone = build_backbone("hf", Sources(Path(), Extraction(kind="hf", model=str(folder))))
    assert isinstance(backbone, Backbone)
    return backbone


def frozen(name: str, backbone: Backbone, model: Any, options: Any) -> None:
    """Features of pictures against the bare model."""
    extractor = Extractor("hf", backbone, torch.device("cpu"), options.pictures)
    images = [Picture(str(n), jpeg(n)) for n in range(options.pictures)]
    values = torch.randn(options.pictures, 3, SIDE, SIDE)

    def bare() -> None:
        with torch.inference_mode():
            for part in values.split(2):
                model(part)

    times = compare(
        f"{name}, frozen, float32, {options.pictures} pictures",
        {"bare model": bare, "features": lambda: list(extractor.run(images))},
        options.rounds,
    )
    say_rates(times, options.pictures)


def in_the_loop(name: str, folder: str, model: Any, pixels: torch.Tensor, options: Any) -> None:
    """A step of the encoder against a step of the bare model, of which as much learns."""
    encoder = HubImageEncoder(HubImageSettings(model=folder, train=options.train)).train()
    values = torch.randn(len(pixels), 3, SIDE, SIDE)
    model.pooler = None
    set_learning(model.train(), Learning(train=options.train))
    for dtype in (getattr(torch, dtype) for dtype in options.dtypes):

        def step(run: Callable[[], torch.Tensor], module: Any, dtype: Any = dtype) -> None:
            module.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
                output = run()
            output.float().square().mean().backward()

        times = compare(
            f"{name}, in the loop, {options.train}, {dtype}, {len(pixels)} pictures",
            {
                "bare model": lambda: step(lambda: model(values).last_hidden_state, model),
                "backbone": lambda: step(lambda: encoder(pixels)[0], encoder),
            },
            options.rounds,
        )
        say_rates(times, len(pixels))


def say_rates(times: dict[str, Any], count: int) -> None:
    bare, ours = times.values()
    fastest = min(one.processor for one in ours)
    rate = 1 / ratio_of(ours, bare, 1)
    print(f"  {count / fastest:.2f} pictures a second, {rate:.2f} of the bare model's rate")


def jpeg(number: int) -> Any:
    """A picture of noise that a JPEG of usual size holds."""
    rng = np.random.default_rng(number)
    small = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(small).resize((640, 480)).save(file, "JPEG", quality=90)
    return Image.open(io.BytesIO(file.getvalue()))


if __name__ == "__main__":
    main()
