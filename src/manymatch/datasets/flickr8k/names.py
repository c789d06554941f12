"""The names under which the files of Flickr8k are passed around, and those used here."""

from __future__ import annotations

TOKENS = "Flickr8k.token.txt"
KARPATHY = "dataset_flickr8k.json"
LISTS = {
    "train": "Flickr_8k.trainImages.txt",
    "validation": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}
EXPERT = "ExpertAnnotations.txt"
CROWD = "CrowdFlowerAnnotations.txt"
IMAGES = "images"

USUAL_IMAGES = (
    "images_224.tar",
    "Flickr8k_Dataset.zip",
    "Flicker8k_Dataset",
    "Flickr8k_Dataset",
    "Images",
    IMAGES,
)
"""Of the images, in the order in which they are looked for ("Flicker8k" is the publishers')."""
