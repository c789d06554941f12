"""Embed a split with a two-tower model of transformers, for `manymatch score`:

manymatch ids scenes --to ids
python examples/clip.py openai/clip-vit-base-patch32 ids out.npz
manymatch score scenes --images out.npz:images --texts out.npz:texts --as clip
"""

import csv
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import AutoModel, AutoProcessor

name, ids, target = sys.argv[1:]
model, processor = AutoModel.from_pretrained(name).eval(), AutoProcessor.from_pretrained(name)


def embedded(column, rows, encode, size=64):
    with Path(ids, f"{rows}.csv").open(newline="", encoding="utf-8") as file:
        values = [row[column] for row in csv.DictReader(file)]
    parts = [encode(values[start : start + size]) for start in range(0, len(values), size)]
    return torch.cat(parts).numpy()


def images(files):
    pictures = [Image.open(file).convert("RGB") for file in files]
    return model.get_image_features(**processor(images=pictures, return_tensors="pt")).pooler_output


def texts(captions):
    words = processor(text=captions, padding=True, truncation=True, return_tensors="pt")
    return model.get_text_features(**words).pooler_output


with torch.inference_mode():
    np.savez(
        target,
        images=embedded("file", "images", images),
        texts=embedded("caption", "captions", texts),
    )
