"""Tiny vision models of transformers with random weights, saved into folders."""

import json
import shutil
from pathlib import Path

import httpx2
import numpy as np
import torch
import transformers
from huggingface_hub.errors import GatedRepoError
from picture_place import picture

from manymatch.config.params import Extraction
from manymatch.features import build_backbone
from manymatch.features.backbone import Sources
from manymatch.features.extractors import Extractor
from manymatch.features.image_list import Picture

SIZE, PROCESSOR = 32, "preprocessor_config.json"
SIZES = [(60, 48), (33, 90), (64, 64)]
PICTURES = [Picture(str(n), picture(n).resize(size)) for n, size in enumerate(SIZES)]
_VIT = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": SIZE,
    "patch_size": 8,
}
_STAGES = {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 8, 16, 16]}
_WINDOWS = {"image_size": SIZE, "patch_size": 2, "embed_dim": 8, "depths": [1, 1, 1]}
_TEXT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 99}
_TOWERS = {"text_config": _TEXT | {"intermediate_size": 32}, "vision_config": _VIT}

FAMILIES = {
    "vit": ("ViT", _VIT, 1, "first"),
    "deit": ("DeiT", _VIT, 2, "first"),
    "beit": ("Beit", _VIT, 1, "pooler"),
    "data2vec-vision": ("Data2VecVision", _VIT, 1, "first"),
    "vit_msn": ("ViTMSN", _VIT, 1, "first"),
    "clip": ("CLIP", _TOWERS | {"projection_dim": 12}, 1, "first"),
    "siglip": ("Siglip", _TOWERS, 0, "pooler"),
    "dinov2": ("Dinov2", _VIT, 1, "first"),
    "dinov2_with_registers": ("Dinov2WithRegisters", _VIT, 5, "first"),
    "dinov3_vit": ("DINOv3ViT", _VIT | {"num_register_tokens": 4}, 5, "first"),
    "ijepa": ("IJepa", _VIT, 0, "mean"),
    "swin": ("Swin", _WINDOWS | {"num_heads": [1, 2, 2], "window_size": 4}, 0, "mean"),
    "focalnet": (
        "FocalNet",
        _WINDOWS | {"focal_levels": [1] * 3, "focal_windows": [3] * 3},
        0,
        "mean",
    ),
    "convnext": ("ConvNext", _STAGES, 0, "pooler"),
    "resnet": ("ResNet", _STAGES | {"embedding_size": 8}, 0, "pooler"),
    "regnet": ("RegNet", _STAGES | {"embedding_size": 8, "groups_width": 4}, 0, "pooler"),
    "mobilenet_v2": ("MobileNetV2", {"depth_multiplier": 0.25, "image_size": SIZE}, 0, "pooler"),
    "pvt_v2": (
        "PvtV2",
        _STAGES | {"num_attention_heads": [1, 1, 2, 2], "image_size": SIZE},
        0,
        "mean",
    ),
}
"""Model type -> name of its classes, settings, tokens before the patches, and its pooled vector:
the first token, the mean of the cells or the pooler's output."""
SQUASH = {"size": {"height": SIZE, "width": SIZE}, "image_mean": [0.5, 0.4, 0.3]}
RECIPE = SQUASH | {"image_std": [0.2, 0.3, 0.25], "image_processor_type": "ViTImageProcessor"}
CROP = RECIPE | {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": 36},
    "crop_size": {"height": SIZE, "width": SIZE},
}


def save(folder, family="vit", recipe=RECIPE, **settings):
    """Save a model; return the folder and the model."""
    name, given = FAMILIES[family][:2]
    torch.manual_seed(1)
    config = getattr(transformers, f"{name}Config")(**given, **settings)
    model = transformers.AutoModel.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # also norms and biases, which begin as 1 and 0
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    (folder / PROCESSOR).write_text(json.dumps(recipe))
    return folder, model


def saved_tower(folder):
    """The network of pictures in a folder, by transformers alone."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    return getattr(model, "vision_model", model)


def settings(folder, **given):
    return Extraction(kind="hf", model=str(folder), **given)


def built(folder, **given):
    return build_backbone("hf", Sources(Path(), settings(folder, **given)))


def extracted(backbone, batch=2):
    run = Extractor("hf", backbone, torch.device("cpu"), batch).run(PICTURES)
    return np.stack([features for _, features, _ in run])


def pixel_values(recipe, pictures=PICTURES):
    """What transformers' own class for Pillow makes of the pictures."""
    name = recipe["image_processor_type"]
    own = {key: value for key, value in recipe.items() if key != "image_processor_type"}
    processor = getattr(transformers, f"{name}Pil")(**own)
    images = [image.source for image in pictures]
    return torch.from_numpy(np.stack(processor(images)["pixel_values"]))


COMMIT = "0123456789abcdef" * 2 + "01234567"


def cached(hub, name, folder, monkeypatch):
    """Put a model into the cache `hub`, as `COMMIT` and as `main`, and take the network away."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    home = hub / f"models--{name.replace('/', '--')}"
    shutil.copytree(folder, home / "snapshots" / COMMIT)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)


def gated(name, local_files_only, **_):
    """`snapshot_download` of a repository that asks for a consent."""
    if local_files_only:
        raise OSError
    request = httpx2.Request("GET", "https:")
    raise GatedRepoError("no", response=httpx2.Response(403, request=request))


def edit(name, **changes):
    """A fault: keys of a JSON file that are changed, or removed where the new value is None."""
    kept = {key: value for key, value in changes.items() if value is not None}

    def damage(folder):
        content = json.loads((folder / name).read_text())
        content = {key: value for key, value in content.items() if key not in changes} | kept
        (folder / name).write_text(json.dumps(content))

    return damage


def only_bin(folder):
    """A fault: weights as a pickle."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
