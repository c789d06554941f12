"""Frozen ResNets at 224 pixels and ResNeXt-101 at 512: a grid of cells with 2048 features."""

from manymatch.features.backbone import GridBackbone, Sources
from manymatch.networks.backbones import resnet, resnext


def build(name: str, sources: Sources) -> GridBackbone:
    """Return the backbone.

    The setting `weights` is for a ResNet a folder with config.json and model.safetensors, a hub
    name, or a file of torchvision (.pth); for ResNeXt-101 its file of weights.
    """
    source, size = (resnext, 512) if name == "resnext101_wsl" else (resnet, 224)
    network = source.pretrained(name, sources.settings.weights)
    return GridBackbone(
        network,
        resnet.MEAN,
        resnet.STD,
        size=size,
        width=resnet.WIDTH,
        scaling="ImageNet mean and deviation",
    )
