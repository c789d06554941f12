"""Contrastive losses: InfoNCE, SigLIP's sigmoid loss, and CORA's loss with entities."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def positive_pairs(scores: Tensor, image_index: Tensor) -> Tensor:
    """`(n, m)` bool: True where the caption (column) belongs to the image (row).

    Args:
        scores: `(n, m)`, images by captions, or anything else with n rows on their device.
        image_index: `(m,)` row of each caption's image.
    """
    rows = torch.arange(scores.shape[0], device=scores.device)
    return rows[:, None] == image_index


def positive_scores(scores: Tensor, image_index: Tensor) -> Tensor:
    """`(m,)` score of each caption with its own image; arguments as for `positive_pairs`."""
    # Unlike indexing by two tensors, `gather` has a gradient that a GPU need not sort.
    return scores.gather(0, image_index[None]).squeeze(0)


def without(scores: Tensor, left_out: Tensor | None, value: float) -> Tensor:
    """`scores` with `value` where `left_out`, which has their shape; None: no pair is left out."""
    return scores if left_out is None else scores.masked_fill(left_out, value)


def either(positive: Tensor, left_out: Tensor | None) -> Tensor:
    """The pairs that are no negatives: the positives and those that are left out."""
    return positive if left_out is None else positive | left_out


def transposed(left_out: Tensor | None) -> Tensor | None:
    """Pairs `(n, m)` that a loss leaves out, with the captions as queries: `(m, n)`."""
    return None if left_out is None else left_out.T


def mean(terms: Tensor) -> Tensor:
    """The mean of all `terms`; 0, as a part of the graph, if there are no terms."""
    return terms.mean() if terms.numel() else terms.sum()


def sum_of_means(terms: Tensor, sides: Sequence[Tensor]) -> Tensor:
    """The sum over `sides`, such as images and captions, of the mean of the terms of a side.

    `terms` has a row for each row of all sides: one operation on both takes a GPU less time than
    two.
    """
    first, *others = (mean(part) for part in terms.split([len(side) for side in sides]))
    return sum(others, first)


def info_nce(
    scores: Tensor, image_index: Tensor, temperature: float, left_out: Tensor | None = None
) -> Tensor:
    """Cross-entropy of each positive pair against its negatives, both directions added.

    With `z = scores / temperature` and i the image of caption j, the mean over all captions j of
    `-log(exp z(i, j) / (exp z(i, j) + sum_k exp z(i, k)))`, k over captions of OTHER images, plus
    the mean over j of `-log(exp z(i, j) / sum_k exp z(k, j))`, k over all images. The other
    captions of an image are neither negatives nor terms of the denominator. The sum of the two
    directions is not halved. Without captions the loss is 0.

    Args:
        scores: `(n, m)`, images by captions.
        image_index: `(m,)` row of each caption's image.
        temperature: > 0.
        left_out: `(n, m)` bool; pairs of other images that are no negatives either.

    Relations:
        `entity_contrastive` takes any positives and averages over each anchor first.

    References:
        van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018;
        MaxMatch's `L_con`.
    """
    if not len(image_index):
        return scores.sum()  # 0, and part of the graph
    positive = positive_pairs(scores, image_index)
    logits, passed = scores / temperature, either(positive, left_out)
    text_terms = contrastive_terms(logits, passed)
    image_terms = contrastive_terms(logits.T, passed.T).T
    directions = text_terms, image_terms
    own_texts, own_images = (positive_scores(terms, image_index) for terms in directions)
    return own_texts.mean() + own_images.mean()


def sigmoid_pairs(logits: Tensor, image_index: Tensor, left_out: Tensor | None = None) -> Tensor:
    """Each pair of an image and a caption is classified alone: true or false.

    The sum over all images k and captions j of `-log sigmoid(z(k, j))` if j is a caption of k, else
    `-log sigmoid(-z(k, j))`, over the number m of captions. Without captions the loss is 0.

    Args:
        logits: `(n, m)`, images by captions: a learned scale times scores, plus a learned bias.
        image_index: `(m,)` row of each caption's image.
        left_out: `(n, m)` bool; pairs of other images that add nothing.

    Relations:
        `info_nce` normalises over the candidates of the batch; here no pair depends on another.

    References:
        Zhai et al., Sigmoid Loss for Language Image Pre-Training (SigLIP), ICCV 2023, section 3.2,
        where each image has one caption.
    """
    positive = positive_pairs(logits, image_index)
    terms = torch.nn.functional.softplus(torch.where(positive, -logits, logits))
    return without(terms, left_out, 0.0).sum() / max(len(image_index), 1)


def entity_contrastive(
    scores: Tensor, positive: Tensor, temperature: float, left_out: Tensor | None = None
) -> Tensor:
    """Supervised contrastive loss of images and concepts (captions and entities).

    The mean over images of the mean over the image's positives of
    `-log(exp z / (exp z + sum over its negatives of exp z))`, `z = scores / temperature`, plus
    the same with concepts as anchors and images as candidates.

    Args:
        scores: `(n, C)` images by concepts.
        positive: `(n, C)` bool; a row or a column without any True counts as 0 in its mean.
        temperature: > 0; 0.01 in CORA.
        left_out: `(n, C)` bool; pairs that are neither positives nor negatives.

    Relations:
        With captions alone, equally many of each image, this loss is `info_nce`. The mean over
        each anchor first keeps an entity such as "man", a positive of half the batch, from
        outweighing the others.

    References:
        Pham et al., CORA, CVPR 2024, L_CON; Khosla et al., Supervised Contrastive Learning,
        NeurIPS 2020, eq. 2.
    """
    logits, passed = scores / temperature, either(positive, left_out)
    return _anchored(logits, positive, passed) + _anchored(logits.T, positive.T, passed.T)


def _anchored(logits: Tensor, positive: Tensor, passed: Tensor) -> Tensor:
    terms = contrastive_terms(logits, passed).masked_fill(~positive, 0.0)
    return mean(terms.sum(1) / positive.sum(1).clamp(min=1))


def entity_positives(
    image: Tensor,
    names: Tensor,
    attributes: Tensor,
    n_images: int,
    asked: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """The entities that are positives of each image, by the captions of the batch.

    An entity is a positive of an image that has an entity of the same name with at least the same
    attributes: "dog" and "black dog" are positives of an image with a "big black dog".

    Args:
        image: `(V,)` row of the image of each entity's caption.
        names: `(V,)` ids, equal for equal names.
        attributes: `(V, A)` ids, 0 where an entity has no more attributes.
        n_images: number of images.
        asked: names `(W,)` and attributes `(W, A)` of the entities that may be positives, if these
            are not those of the images.

    Returns:
        `(n_images, V)` or `(n_images, W)` bool; every entity is a positive of its own image.
    """
    keys = _keys(names, attributes)
    entities = (keys if asked is None else _keys(*asked))[:, -1].contiguous()
    whole = entities.sort().values
    own = torch.searchsorted(whole, entities)  # equal names and attributes share a column
    column = torch.searchsorted(whole, keys).clamp(max=len(whole) - 1)
    # Keys that no entity has are collected in an extra last column.
    column = column.masked_fill(whole[column] != keys, len(whole))
    present = image.new_zeros(n_images, len(whole) + 1, dtype=torch.bool)
    present = present.index_put((image[:, None], column), present.new_ones(()))
    return present.index_select(1, own)


def _keys(names: Tensor, attributes: Tensor) -> Tensor:
    """`(V, 2^A)`: a number for each name with each subset of its attributes, the whole set last.

    Equal names and sets have equal numbers. Different ones have equal numbers with a probability of
    2^-63. A comparison of all pairs of entities would take far longer, and would wait for a GPU to
    count equal ones.
    """
    size = attributes.shape[1]
    repeated = (attributes[:, :, None] == attributes[:, None]).tril(-1).any(2)
    values = _scrambled(attributes).masked_fill(repeated | (attributes == 0), 0)
    columns = torch.arange(size, device=names.device)
    subsets = torch.arange(2**size, device=names.device)[:, None] >> columns & 1
    return names[:, None] ^ (values[:, None] * subsets).sum(2)


def _scrambled(numbers: Tensor) -> Tensor:
    """Splitmix64's bijection of `numbers`, by which their sums are like random numbers."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        numbers = (numbers ^ numbers >> shift) * factor
    return numbers ^ numbers >> 31


def contrastive_terms(logits: Tensor, positive: Tensor) -> Tensor:
    """`-log(exp(z_ac) / (exp(z_ac) + sum_k exp(z_ak)))`, k over the negatives of anchor a alone.

    The term of one positive neither attracts nor repels the anchor's other positives.

    Args:
        logits: `(..., anchors, candidates)` scores over temperature.
        positive: `(anchors, candidates)` bool; the other pairs are negatives.

    Returns:
        `(..., anchors, candidates)`, valid where `positive`; 0 for an anchor without negatives.
    """
    # The floor is finite, because the gradient of a logsumexp over -inf alone is NaN.
    floor = torch.finfo(logits.dtype).min / 2
    negatives = logits.masked_fill(positive, floor).logsumexp(-1, keepdim=True)
    # `-logsigmoid(logits - negatives)`, which starts more kernels. Above 50 it is its argument.
    return functional.softplus(negatives - logits, threshold=50)
