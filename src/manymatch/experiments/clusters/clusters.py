"""The command `clusters`: the classes of a trained SwAMP by their keywords and members, as JSON.

    {"dataset", "split", "preset", "method", "seed", "checkpoint_sha256",
     "n_classes", "used": {"captions", "images"}, "agreement",
     "classes": [{"number", "nouns": [[word, captions]], "verbs": [[word, captions]],
                  "captions": [{"caption_id", "caption"}], "images": [image_id],
                  "thumbnails": {image_id: base64 JPEG or null}}]}

A sample is in the class of highest probability `p(y | x)`. Classes that hold any caption or image
stand in `classes`, most captions first; `used` counts those that hold captions, and images;
`agreement` is the percentage of captions in the class of their image. The first `SHOWN` classes
have thumbnails of their first `PICTURES` images.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from manymatch.evaluation.trained import Trained
from manymatch.experiments.clusters.keywords import Words, most_frequent, words_of
from manymatch.experiments.studies.subject import Subject
from manymatch.losses.swapped_labels import SwappedLabels
from manymatch.methods.swamp import SwAMP
from manymatch.scene_graphs.parser import load_model
from manymatch.system import files
from manymatch.system.errors import ConfigError

KEYWORDS = 8
"""Nouns, and verbs, told of a class."""
SHOWN, PICTURES = 12, 4


class Members(NamedTuple):
    """Rows of a class's captions and images, ascending."""

    captions: list[int]
    images: list[int]


def clusters(model: Path, shards: Path, target: Path, *, split: str, parser: str) -> None:
    """Write the classes of the SwAMP in `model` on `split` to `target`.

    Args:
        parser: name of the spaCy model that tells nouns and verbs.

    Raises:
        ConfigError: the model has no classes, or there is no such spaCy model.
        CheckpointError, DataError: as for `evaluate`.
    """
    subject = Subject.open(model, shards, split)
    labels = _labels(subject.trained)
    captions = _classes(labels, subject.found.texts.vectors)
    images = _classes(labels, subject.found.images.vectors)
    members = _members(captions, images)
    told = words_of(load_model(parser), [caption.text for caption in subject.captions])
    known = subject.identity() | {
        "n_classes": labels.n_classes,
        "used": {"captions": len(captions.unique()), "images": len(images.unique())},
        "agreement": _agreement(captions, images[subject.found.owner]),
    }
    classes = [_class(subject, number, found, told) for number, found in members.items()]
    for shown in classes[:SHOWN]:
        shown["thumbnails"] = _thumbnails(subject, members[shown["number"]].images[:PICTURES])
    files.write_json(target, known | {"classes": classes})


def _labels(trained: Trained) -> SwappedLabels:
    method = trained.method
    if not isinstance(method, SwAMP) or method.labels is None:
        raise ConfigError(
            f"{trained.folder}: has no classes; clusters are those of the method 'swamp' with a "
            "weight above 0"
        )
    return method.labels


@torch.inference_mode()
def _classes(labels: SwappedLabels, vectors: Tensor) -> Tensor:
    """`(n, 1, D)` -> `(n,)` likeliest classes."""
    return labels.classes(vectors[:, 0]).argmax(1).cpu()


def _members(captions: Tensor, images: Tensor) -> dict[int, Members]:
    """By class: most captions first, then most images, then by number."""
    found: dict[int, Members] = {}
    for column, classes in enumerate((captions, images)):
        for row, number in enumerate(classes.tolist()):
            found.setdefault(number, Members([], []))[column].append(row)
    order = sorted(found, key=lambda n: (-len(found[n].captions), -len(found[n].images), n))
    return {number: found[number] for number in order}


def _agreement(captions: Tensor, of_their_image: Tensor) -> float:
    return round(100 * float((captions == of_their_image).double().mean()), 2)


def _class(subject: Subject, number: int, members: Members, told: list[Words]) -> dict[str, Any]:
    words = [told[row] for row in members.captions]
    captions = [subject.captions[row] for row in members.captions]
    return {
        "number": number,
        "nouns": most_frequent((each.nouns for each in words), KEYWORDS),
        "verbs": most_frequent((each.verbs for each in words), KEYWORDS),
        "captions": [{"caption_id": each.id, "caption": each.text} for each in captions],
        "images": [subject.found.image_ids[row] for row in members.images],
        "thumbnails": {},
    }


def _thumbnails(subject: Subject, rows: list[int]) -> dict[str, str | None]:
    return {
        image.image_id: base64.b64encode(image.thumbnail).decode() if image.thumbnail else None
        for image in subject.images(rows)
    }
