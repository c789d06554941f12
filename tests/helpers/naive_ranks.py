"""Pessimistic ranks by loops over the whole matrix of scores."""


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
