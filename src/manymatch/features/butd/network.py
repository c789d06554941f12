"""The network, with the parameter names of `unc-nlp/frcnn-vg-finetuned`, a conversion of the
original Caffe model.

ResNet-101 is the version of its authors: the stride of a stage is in its first 1 x 1 convolution,
and max pooling starts at the edge. Stages 2 to 4 process the image (one cell per 16 x 16 pixels).
Stage 5 processes the pooled regions, without stride and with dilation 2.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from manymatch.networks.torch_file import load_weights
from manymatch.util.errors import ConfigError
from manymatch.util.regular_file import regular_path

PUBLIC = "unc-nlp/frcnn-vg-finetuned"
_COUNTER = ".num_batches_tracked"
"""A counter that batch norms have in training. Some checkpoints contain it."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of the network. The defaults are those of the public checkpoint."""

    blocks: tuple[int, int, int, int] = (3, 4, 23, 3)
    stem: int = 64
    proposal_hidden: int = 512
    anchors: int = 12
    objects: int = 1600
    attributes: int = 400

    def channels(self, stage: int) -> int:
        """Return the channels of the output of `stage` (2 to 5)."""
        return self.stem * 2**stage


class Network(nn.Module):
    """The network; see the module.

    The layers `bbox_pred`, `fc_attr`, ... do not contribute to features. They are part of the
    network so that the whole checkpoint can be loaded.
    """

    def __init__(self, sizes: Sizes | None = None) -> None:
        super().__init__()
        sizes = sizes or Sizes()
        self.backbone = Trunk(sizes)
        self.proposal_generator = ProposalGenerator(sizes)
        self.roi_heads = RegionHeads(sizes)


class Convolution(nn.Conv2d):
    """A convolution followed by a batch norm."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
    ) -> None:
        super().__init__(inputs, outputs, size, stride, padding, dilation, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(outputs)

    def forward(self, maps: Tensor) -> Tensor:
        normed: Tensor = self.norm(super().forward(maps))
        return normed

    def fold(self) -> None:
        """Fold the frozen norm into the convolution, which computes the same function faster."""
        norm = self.norm
        if isinstance(norm, nn.BatchNorm2d):
            fused = nn.utils.fusion.fuse_conv_bn_eval(self.eval(), norm.eval())
            self.weight, self.bias, self.norm = fused.weight, fused.bias, nn.Identity()


class Block(nn.Module):
    """1 x 1 (with the stride), 3 x 3 and 1 x 1 convolutions, with a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, dilation: int = 1) -> None:
        super().__init__()
        inner = outputs // 4
        self.conv1 = Convolution(inputs, inner, 1, stride=stride)
        self.conv2 = Convolution(inner, inner, 3, padding=dilation, dilation=dilation)
        self.conv3 = Convolution(inner, outputs, 1)
        same = inputs == outputs
        self.shortcut = None if same else Convolution(inputs, outputs, 1, stride=stride)

    def forward(self, maps: Tensor) -> Tensor:
        inner = self.conv2(self.conv1(maps).relu_()).relu_()
        beside = maps if self.shortcut is None else self.shortcut(maps)
        return self.conv3(inner).add_(beside).relu_()


class Stem(nn.Module):
    """The first convolution and max pooling, together with stride 4."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = Convolution(3, channels, 7, stride=2, padding=3)

    def forward(self, pixels: Tensor) -> Tensor:
        return F.max_pool2d(self.conv1(pixels).relu_(), 3, stride=2, ceil_mode=True)


class Trunk(nn.Module):
    """(1, 3, H, W) -> (1, 1024, H / 16, W / 16), sizes rounded up."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.stem = Stem(sizes.stem)
        inputs = sizes.stem
        for stage, blocks in zip((2, 3, 4), sizes.blocks, strict=False):
            stride, outputs = 1 if stage == 2 else 2, sizes.channels(stage)
            self.add_module(f"res{stage}", _stage(inputs, outputs, blocks, stride))
            inputs = outputs

    def forward(self, pixels: Tensor) -> Tensor:
        for part in self.children():
            pixels = part(pixels)
        return pixels


def _stage(inputs: int, outputs: int, blocks: int, stride: int, dilation: int = 1) -> nn.Sequential:
    rest = [Block(outputs, outputs, 1, dilation) for _ in range(blocks - 1)]
    return nn.Sequential(Block(inputs, outputs, stride, dilation), *rest)


class ProposalGenerator(nn.Module):
    """Predicts for every cell and anchor whether it contains an object, and the object's box."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.anchor_generator = Anchors(sizes.anchors)
        self.rpn_head = ProposalHead(sizes)


class Anchors(nn.Module):
    """`cell_anchors[0]` (A, 4): boxes around the origin, in pixels; part of the checkpoint."""

    def __init__(self, anchors: int) -> None:
        super().__init__()
        self.cell_anchors = nn.ParameterList([torch.zeros(anchors, 4)])


class ProposalHead(nn.Module):
    """(1, 1024, h, w) -> objectness (h * w * A,), deltas (h * w * A, 4), cells row by row."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        hidden = sizes.proposal_hidden
        self.conv = nn.Conv2d(sizes.channels(4), hidden, 3, padding=1)
        self.objectness_logits = nn.Conv2d(hidden, sizes.anchors, 1)
        self.anchor_deltas = nn.Conv2d(hidden, 4 * sizes.anchors, 1)

    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.conv(maps).relu_()
        objectness, deltas = self.objectness_logits(hidden)[0], self.anchor_deltas(hidden)[0]
        return objectness.permute(1, 2, 0).flatten(), deltas.permute(1, 2, 0).reshape(-1, 4)


class RegionHeads(nn.Module):
    """Pooled regions (k, 1024, 14, 14) -> features (k, 2048), scores of objects (k, 1600)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.res5 = _stage(sizes.channels(4), sizes.channels(5), sizes.blocks[3], 1, dilation=2)
        self.box_predictor = Predictor(sizes)

    def forward(self, pooled: Tensor) -> tuple[Tensor, Tensor]:
        features = self.res5(pooled).mean((2, 3))
        logits = self.box_predictor.cls_score(features)
        return features, logits.softmax(dim=1)[:, :-1]  # the last class is the background


class Predictor(nn.Module):
    """Predicts a region's object class or background, box and attribute."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.channels(5)
        self.cls_score = nn.Linear(width, sizes.objects + 1)
        self.bbox_pred = nn.Linear(width, 4 * sizes.objects)
        self.cls_embedding = nn.Embedding(sizes.objects + 1, width // 8)
        self.fc_attr = nn.Linear(width + width // 8, width // 4)
        self.attr_score = nn.Linear(width // 4, sizes.attributes + 1)


def load_network(name: str, weights: str | None, sizes: Sizes | None = None) -> Network:
    """Return the network with the weights of a local file and folded batch norms.

    The tensors have the names of the public checkpoint, with none missing and none unknown.
    """
    if weights is None:
        raise ConfigError(f"{name}: no weights. Set weights to pytorch_model.bin of {PUBLIC}")
    with torch.device("meta"):
        network = Network(sizes)
    network.load_state_dict(_checked(Path(weights), network.state_dict()), assign=True)
    return folded(network)


def folded(network: Network) -> Network:
    """Return `network` for inference, with each batch norm in the convolution before it."""
    network.eval().requires_grad_(False)
    for module in network.modules():
        if isinstance(module, Convolution):
            module.fold()
    return network


def _checked(path: Path, expected: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of `path` if names and shapes are as expected."""
    tensors = _read(path)
    counters = {key for key in tensors.keys() | expected.keys() if key.endswith(_COUNTER)}
    missing = sorted(expected.keys() - tensors.keys() - counters)
    unknown = sorted(tensors.keys() - expected.keys())
    if missing or unknown:
        fault = f"lacks '{missing[0]}'" if missing else f"has the unknown '{unknown[0]}'"
        raise ConfigError(f"{path}: not the weights of {PUBLIC}: {fault}")
    for key in expected.keys() - counters:
        if tensors[key].shape != expected[key].shape:
            shapes = f"{tuple(tensors[key].shape)}, not {tuple(expected[key].shape)}"
            raise ConfigError(f"{path}: not the weights of {PUBLIC}: '{key}' is {shapes}")
        if not tensors[key].isfinite().all():
            raise ConfigError(
                f"{path}: '{key}' contains NaN or infinity. Download the weights again"
            )
    weights = {key: tensors[key].float().contiguous() for key in expected.keys() - counters}
    return weights | {key: torch.zeros((), dtype=torch.long) for key in counters}


def _read(path: Path) -> dict[str, Tensor]:
    if path.suffix != ".safetensors":
        return load_weights(path, PUBLIC)
    try:
        with regular_path(path) as name:
            return load_file(name)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file of weights. Set weights to those of {PUBLIC}"
        ) from None
    except (OSError, RuntimeError, ValueError, SafetensorError):
        raise ConfigError(f"{path}: not the weights of {PUBLIC}: cannot be read") from None
