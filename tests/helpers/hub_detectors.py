"""Tiny detectors of transformers with random weights, saved into folders."""

import json
from pathlib import Path

import torch
import transformers
from hub_models import PROCESSOR

from manymatch.config.params import Extraction
from manymatch.features import build_backbone
from manymatch.features.backbone import Sources

_STAGES = {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]}
_LEVELS = _STAGES | {"out_features": ["stage2", "stage3", "stage4"]}
_LAST = {"backbone_config": {"model_type": "resnet", "out_features": ["stage4"]} | _STAGES}
_LAYERS = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "num_queries": 12}
_FEED = {"encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
_DETR = _LAYERS | _FEED | {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
_REAL_TIME = _DETR | {
    "encoder_hidden_dim": 32,
    "encoder_in_channels": [16] * 3,
    "decoder_in_channels": [32] * 3,
    "backbone_config": {"model_type": "rt_detr_resnet", "layer_type": "basic"} | _LEVELS,
}
_GRAPHS = {
    "model_type": "hgnet_v2",
    "stem_channels": [3, 8, 8],
    "stage_in_channels": [8, 16, 16, 16],
    "stage_mid_channels": [8] * 4,
    "stage_out_channels": [16] * 4,
    "stage_num_blocks": [1] * 4,
    "stage_numb_of_layers": [1] * 4,
}
_WINDOWS = {
    "model_type": "rf_detr_dinov2",
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 64,
    "patch_size": 8,
    "num_windows": 2,
    "out_features": ["stage1", "stage2"],
}
_DECODER = {"decoder_self_attention_heads": 2, "decoder_cross_attention_heads": 2}
_YOLOS = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
EDGES = {"size": {"shortest_edge": 64, "longest_edge": 90}, "do_pad": True, "pad_size": None}
SQUARE = {"size": {"height": 64, "width": 96}, "do_normalize": False}
DETECTORS = {
    "detr": ("Detr", _DETR | _LAST, "Detr", EDGES),
    "conditional_detr": ("ConditionalDetr", _DETR | _LAST, "ConditionalDetr", EDGES),
    "deformable_detr": (
        "DeformableDetr",
        _DETR | {"num_feature_levels": 3, "backbone_config": {"model_type": "resnet"} | _LEVELS},
        "DeformableDetr",
        {"size": {"max_height": 64, "max_width": 70}},
    ),
    "yolos": (
        "Yolos",
        _YOLOS | {"intermediate_size": 32, "image_size": [64, 96], "num_detection_tokens": 12},
        "Yolos",
        EDGES,
    ),
    "rt_detr": ("RTDetr", _REAL_TIME, "RTDetr", SQUARE),
    "rt_detr_v2": ("RTDetrV2", _REAL_TIME, "RTDetr", SQUARE),
    "d_fine": (
        "DFine",
        _REAL_TIME | {"backbone_config": _GRAPHS | _LEVELS},
        "RTDetr",
        SQUARE,
    ),
    "rf_detr": (
        "RfDetr",
        {"d_model": 32, "decoder_layers": 2, "num_queries": 12, "group_detr": 2}
        | _DECODER
        | {"decoder_ffn_dim": 16, "intermediate_size": 16, "backbone_config": _WINDOWS},
        "RfDetr",
        {"size": {"height": 64, "width": 64}},
    ),
}
"""Model type -> name of its classes, settings, its processor and the processor's settings."""


def save(folder, family="d_fine", **recipe):
    """Save a detector with scores of all sizes; return the folder and the detector."""
    name, given, processor, own = DETECTORS[family]
    torch.manual_seed(1)
    config = getattr(transformers, f"{name}Config")(num_labels=5, **given)
    model = transformers.AutoModelForObjectDetection.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    content = own | {"image_processor_type": f"{processor}ImageProcessor"} | recipe
    (folder / PROCESSOR).write_text(json.dumps(content))
    return folder, model


def processor_of(family, **given):
    """transformers' own class for Pillow. (RF-DETR's is for torchvision, and resizes and scores as
    Deformable DETR's.)"""
    _, _, processor, own = DETECTORS[family]
    name = {"RfDetr": "DeformableDetr"}.get(processor, processor)
    return getattr(transformers, f"{name}ImageProcessorPil")(**own | given)


def settings(folder, **given):
    backbone = {"kind": "lite0", "size": 64}
    return Extraction(**{"kind": "regions", "detector": str(folder), "backbone": backbone} | given)


def built(folder, **given):
    return build_backbone("regions", Sources(Path(), settings(folder, **given)))
