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
    keys = _keys(names, attributes)
    asked = keys[:, -1].sort().values
    column = torch.searchsorted(asked, keys).clamp(max=len(asked) - 1)
    own = column[:, -1]  # entities that ask for the same share a column
    # What no entity asks for goes to one more column.
    column = column.masked_fill(asked[column] != keys, len(asked))
    offered = image.new_zeros(n_images, len(asked) + 1, dtype=torch.bool)
    offered = offered.index_put((image[:, None], column), offered.new_ones(()))
    return offered.index_select(1, own)


def _keys(names: Tensor, attributes: Tensor) -> Tensor:
    """`(V, 2^A)`: a number for each name with each subset of its attributes, the whole set last.

    Equal names and sets have equal numbers. Others differ, but for a chance of 2^-63. To compare
    all pairs of entities would take far longer, and would wait for a GPU to count equal ones.
    """
    size = attributes.shape[1]
    again = (attributes[:, :, None] == attributes[:, None]).tril(-1).any(2)
    values = _mixed(attributes).masked_fill(again | (attributes == 0), 0)
    columns = torch.arange(size, device=names.device)
    subsets = torch.arange(2**size, device=names.device)[:, None] >> columns & 1
    return names[:, None] ^ (values[:, None] * subsets).sum(2)


def _mixed(numbers: Tensor) -> Tensor:
    """Other numbers, one to one, whose sums are as good as random (splitmix64)."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        numbers = (numbers ^ numbers >> shift) * factor
    return numbers ^ numbers >> 31
