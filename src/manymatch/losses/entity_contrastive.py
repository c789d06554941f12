"""CORA's contrastive loss between images, and captions and entities."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.losses.contrastive import contrastive_terms
from manymatch.losses.mean import mean


def entity_contrastive(scores: Tensor, positive: Tensor, temperature: float) -> Tensor:
    """Supervised contrastive loss of images and concepts (captions and entities).

    The mean over images of the mean over the image's positives of
    `-log(exp z / (exp z + sum over its negatives of exp z))`, `z = scores / temperature`, plus
    the same with concepts as anchors and images as candidates.

    Args:
        scores: `(n, C)` images by concepts.
        positive: `(n, C)` bool; a row or a column without any True counts as 0 in its mean.
        temperature: > 0; 0.01 in CORA.

    Relations:
        With captions alone, equally many of each image, this loss is `info_nce`. The mean over
        each anchor first keeps an entity such as "man", a positive of half the batch, from
        outweighing the others.

    References:
        Pham et al., CORA, CVPR 2024, L_CON; Khosla et al., Supervised Contrastive Learning,
        NeurIPS 2020, eq. 2.
    """
    logits = scores / temperature
    return _anchored(logits, positive) + _anchored(logits.T, positive.T)


def _anchored(logits: Tensor, positive: Tensor) -> Tensor:
    terms = contrastive_terms(logits, positive).masked_fill(~positive, 0.0)
    return mean(terms.sum(1) / positive.sum(1).clamp(min=1))


def entity_positives(image: Tensor, names: Tensor, attributes: Tensor, n_images: int) -> Tensor:
    """The entities that are positives of each image, by the captions of the batch.

    An entity is a positive of an image that has an entity of the same name with at least the same
    attributes: "dog" and "black dog" are positives of an image with a "big black dog".

    Args:
        image: `(V,)` row of the image of each entity's caption.
        names: `(V,)` ids, equal for equal names.
        attributes: `(V, A)` ids, 0 where an entity has no more attributes.
        n_images: number of images.

    Returns:
        `(n_images, V)` bool; every entity is a positive of its own image.
    """
    other, entity = (names[:, None] == names).nonzero(as_tuple=True)
    required, present = attributes[entity], attributes[other]
    included = ((required == 0) | (required[:, :, None] == present[:, None]).any(2)).all(1)
    positive = torch.zeros(n_images, len(names), dtype=torch.bool, device=names.device)
    positive[image[other[included]], entity[included]] = True
    return positive
