"""Precision at R and R@1 for data sets in which a common property makes items positive.

Such positives are too many for a list. CUB's retrieval by class and COCO's plausible matches are
scored by this module.

R is the number of a query's positives in the gallery.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from manymatch.evaluation.protocols.ranked_split import DoesNotApply, Protocol, RankedSplit
from manymatch.methods.shared.method import Embeddings
from manymatch.model.scores import Score, whole_rows

SETTINGS = ("all_classes", "zero_shot")


def classes(split: RankedSplit) -> dict[str, dict[str, dict[str, float]]]:
    """`i2t` and `t2i` with `r_precision` and `r1`, in percent, for each setting with images.

    Items of the query's class are positives. The setting `all_classes` has the images of seen
    classes (`Labels.seen`) and `zero_shot` all other images. Each setting is a gallery of its own.

    References:
        Chun et al., PCME, CVPR 2021, section 4.3; R-Precision of Musgrave et al., ECCV 2020.
    """
    labels = split.labels
    if labels is None or any(len(own) != 1 for own in labels.image_labels):
        raise DoesNotApply("R-Precision on classes needs one class label of every image")
    if not labels.seen:
        raise DoesNotApply("no class of a training image is known, so no class is known as unseen")
    class_of = torch.tensor([label for (label,) in labels.image_labels])
    seen = torch.tensor([label in labels.seen for (label,) in labels.image_labels])

    def same_class(images: Tensor, others: Tensor) -> Iterator[Tensor]:
        yield class_of[images][:, None] == class_of[others]

    return {
        name: {
            way: dict(zip(("r_precision", "r1"), values[0].tolist(), strict=True))
            for way, values in both_ways(split, gallery, same_class).items()
        }
        for name, gallery in zip(SETTINGS, (seen, ~seen), strict=True)
        if gallery.any()
    }


Relevant = Callable[[Tensor, Tensor], Iterator[Tensor]]
"""`(rows (q,) of queries, rows (g,) of items) -> masks (q, g)`, one for each kind of relevance.
Each query has a positive."""


def both_ways(split: RankedSplit, included: Tensor, relevant: Relevant) -> dict[str, Tensor]:
    """Compute `precision_and_first` for both directions. The images alone define the matches.

    Args:
        included: `(n,)` mask of the images that count, as queries and as items, with their
            captions.
        relevant: takes rows of images on both sides.
    """
    embedded, image_index = split.embedded, split.embedded.image_index
    included_texts = included[image_index]
    i2t = precision_and_first(
        split.score,
        embedded.images,
        embedded.texts,
        lambda images, texts: relevant(images, image_index[texts]),
        queries_included=included,
        items_included=included_texts,
    )
    t2i = precision_and_first(
        split.from_texts,
        embedded.texts,
        embedded.images,
        lambda texts, images: relevant(image_index[texts], images),
        queries_included=included_texts,
        items_included=included,
    )
    return {"i2t": i2t, "t2i": t2i}


def precision_and_first(
    score: Score,
    queries: Embeddings,
    gallery: Embeddings,
    relevant: Relevant,
    *,
    queries_included: Tensor,
    items_included: Tensor,
) -> Tensor:
    """Means over the queries `(kinds, 2)`: precision at R and R@1, in percent, float64.

    Args:
        score: `(queries, gallery) -> (q, g)`.
        queries_included: `(queries,)` mask of the queries that count.
        items_included: `(gallery,)` mask of the items that are ranked.

    Ties are pessimistic: an irrelevant item of equal score ranks before a positive.

    Raises:
        DataError: a score is not finite.
    """
    items = items_included.nonzero()[:, 0]
    parts = []
    for query_rows, all_scores in whole_rows(score, queries, gallery, queries_included):
        scores = all_scores[:, items.to(all_scores.device)]
        ordered = scores.sort(1, descending=True).values
        kinds = [
            _precision_and_first_of_queries(scores, ordered, mask)
            for mask in relevant(query_rows, items)
        ]
        parts.append(torch.stack(kinds))
    return 100 * torch.cat(parts, 1).mean(1)


def _precision_and_first_of_queries(scores: Tensor, ordered: Tensor, relevant: Tensor) -> Tensor:
    """`(q, 2)` from `scores (q, g)`, the same scores in descending order, and the mask `relevant`.

    The items with at least the score of the R-th item compete for the first R places. Irrelevant
    items take the places that positives of a higher score leave.
    """
    relevant = relevant.to(scores.device)
    count = relevant.sum(1)
    least = ordered.gather(1, count[:, None] - 1)
    higher = ((scores > least) & relevant).sum(1)
    wrong = ((scores >= least) & ~relevant).sum(1)
    retrieved = torch.maximum(higher, count - wrong)
    best_right = scores.masked_fill(~relevant, -torch.inf).amax(1)
    best_wrong = scores.masked_fill(relevant, -torch.inf).amax(1)
    first = (best_right > best_wrong).double()
    return torch.stack([retrieved.double() / count, first], 1).cpu()


PROTOCOLS = [Protocol("classes", ("cub",), classes)]
