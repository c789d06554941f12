"""CORA's contrastive loss between images and everything that is said of them."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.losses.contrastive import contrastive_terms
from manymatch.losses.mean import mean


def entity_contrastive(scores: Tensor, positive: Tensor, temperature: float) -> Tensor:
    """Supervised contrastive loss of images and concepts (captions and entities).

    Mean over images of the mean over the image's positives of
    `-log(exp z / (exp z + sum over its negatives of exp z))`, `z = scores / temperature`, plus
    the same with concepts as anchors and images as candidates.

    Args:
        scores: `(n, C)` images by concepts.
        positive: `(n, C)` bool; a row or a column without any True counts as 0 in its mean.
        temperature: > 0; CORA takes 0.01.

    Relations:
        With captions alone, equally many of each image, it is `info_nce`. Averaging per anchor
        first keeps an entity like "man", true of half the batch, from outweighing the rest.

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
    """Which entities are true of which images, as far as the captions of the batch tell.

    An entity is true of an image if the image has an entity of the same name with at least its
    attributes ("dog" and "black dog" of an image with a "big black dog").

    Args:
        image: `(V,)` row of the image that each entity was said of.
        names: `(V,)` ids, equal for equal names.
        attributes: `(V, A)` ids, 0 where there is none.

    Returns:
        `(n_images, V)` bool; every entity is true of its own image.
    """
    holder, entity = (names[:, None] == names).nonzero(as_tuple=True)
    wanted, held = attributes[entity], attributes[holder]
    included = ((wanted == 0) | (wanted[:, :, None] == held[:, None]).any(2)).all(1)
    positive = torch.zeros(n_images, len(names), dtype=torch.bool, device=names.device)
    positive[image[holder[included]], entity[included]] = True
    return positive
