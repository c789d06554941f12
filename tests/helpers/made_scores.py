"""Ranked splits from a table of scores, and naive loops over the same table."""

import torch

from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.shared.method import Embeddings
from manymatch.model.embed import Embedded


def ranked_split(
    table, image_index, labels=None, *, back=None, image_ids=None, caption_ids=None, depth=10
):
    """A split whose images score captions by `table (n, m)`, and captions images by `back`."""
    score, images, texts = looked_up(table)
    split = Embedded(
        images,
        texts,
        list(image_ids or map(str, range(table.shape[0]))),
        list(caption_ids or map(str, range(table.shape[1]))),
        image_index,
    )
    t2i_score = None if back is None else looked_up(back)[0]
    ranking = rank(score, images, texts, image_index, depth, t2i_score=t2i_score)
    return RankedSplit(split, score, t2i_score, ranking, labels)


def looked_up(table):
    """A score that reads `table` by the rows of the block, and embeddings that carry them."""
    images, texts = (Embeddings(torch.arange(count).view(-1, 1, 1)) for count in table.shape)

    def score(images, texts):
        return table[_run(images), _run(texts)]

    return score, images, texts


def _run(numbered):
    first = int(numbered.vectors[0])
    return slice(first, first + len(numbered))


def consecutive_index(n, captions):
    """`captions` of each of n images."""
    return torch.arange(n).repeat_interleave(captions)


def distinct(n, m, seed):
    """Random scores `(n, m)` of which no two are equal."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(n * m, generator=generator).view(n, m).float()


def ranked(scores, right):
    """Which items are right, best first; of equal scores the wrong ones first."""
    order = sorted(range(len(scores)), key=lambda item: (-scores[item], right[item]))
    return [right[item] for item in order]


def precision_at_r(scores, right):
    """The part of the first R items that is right."""
    count = sum(right)
    return sum(ranked(scores, right)[:count]) / count


def naive_ranks(table, index):
    """The rank of each image's best caption, and of each caption's image, by a loop."""
    i2t, t2i, scores = [], [], table.tolist()
    for image, row in enumerate(scores):
        best = max(row[text] for text, own in enumerate(index) if own == image)
        i2t.append(1 + sum(row[text] >= best for text, own in enumerate(index) if own != image))
    for text, own in enumerate(index):
        rivals = [row[text] for image, row in enumerate(scores) if image != own]
        t2i.append(1 + sum(score >= scores[own][text] for score in rivals))
    return i2t, t2i


def naive_nearest(queries, gallery, depth):
    """Of each element of each query the items by their best cosine: (cosine, item, element)."""

    def cosine(x, y):
        return (x @ y / x.norm() / y.norm()).item()

    return [
        [
            sorted(
                (
                    max((cosine(x, y), item, met) for met, y in enumerate(elements, start=1))
                    for item, elements in enumerate(gallery)
                ),
                reverse=True,
            )[:depth]
            for x in query
        ]
        for query in queries
    ]
