"""The names under which the files of COCO are passed around, and those used here."""

from __future__ import annotations

import re

from manymatch.fetching.gather import Usual

KARPATHY = "dataset_coco.json"
CAPTIONS = "captions"
IDS = "ids"
PRECOMP = "precomp"
LABELS = "categories.json"

USUAL: Usual = {
    "images": (
        "images",
        "trainval35k",
        "val2014/..",
        ("train2014.zip", "val2014.zip"),
    ),
    "captions": (
        KARPATHY,
        "caption_datasets.zip",
        "coco.zip",
        "captions_*20??.json",
        "annotations/captions_*20??.json",
        "annotations/annotations/captions_*20??.json",
        "annotations_trainval2014.zip",
        "precomp",
        "coco_precomp",
    ),
    "caption_ids": ("coco_test_ids.npy", "ids/coco_test_ids.npy", "annotations/coco_test_ids.npy"),
    "instances": (
        "instances_*20??.json",
        "annotations/instances_*20??.json",
        "annotations/annotations/instances_*20??.json",
        "annotations_trainval2014.zip",
    ),
}
"""What is looked for in a folder: the releases' own names, PCME's, VSE-infinity's, SCAN's.
`val2014/..` is the folder itself, where it holds the parts side by side."""

_NUMBER = re.compile(r"(\d{12})\.[a-zA-Z]+$")


def coco_id(file: str) -> int | None:
    """The image's number in a file name such as `COCO_val2014_000000391895.jpg` or, of the 2017
    release, `000000391895.jpg`."""
    match = _NUMBER.search(file)
    return int(match[1]) if match else None
