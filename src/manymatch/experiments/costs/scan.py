"""SCAN on the same data, for comparison. The model is untrained: times do not depend on weights."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from manymatch.batch.batch import Batch
from manymatch.batch.padding import all_real
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.losses.triplets import triplet
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.networks.encoders.image import ImageEncoder, ImageSettings
from manymatch.networks.encoders.text import WordEncoder
from manymatch.similarities.blocks import runs
from manymatch.similarities.vectors import full_precision

_WORD_SIZE, _MARGIN, _TEMPERATURE = 300, 0.2, 4.0
_REGIONS, _REGION_WIDTH = 36, 2048
"""Number and width of the random regions of an image that has only pixels: those of bottom-up
attention."""

_MOST_IMAGES = 64
_NUMBERS = {"cpu": 2**20, "cuda": 2**26}
"""Size of the attention of a block of pairs; on the CPU the attention must fit in the cache."""
_EPSILON = 1e-8


class Scan(Method):
    """Image-to-text attention with average pooling ("i-t AVG"), as measured in SwAMP's table 12.

    A linear layer over each region and a bi-GRU over the words: `vectors` are the regions `(n, R,
    D)` of an image and the words `(m, L, D)` of a caption, and `mask` marks the real ones.

    References:
        Lee et al., Stacked Cross Attention for Image-Text Matching, ECCV 2018.
    """

    made_up: Tensor

    def __init__(self, vocabulary: AnyVocabulary, feature_width: int | None, size: int) -> None:
        """`feature_width` is None if images have only pixels; then the regions are random."""
        width = feature_width or _REGION_WIDTH
        super().__init__(None, vocabulary, width)
        self.reads_pixels, self.size = feature_width is None, size
        self.register_buffer("made_up", torch.rand(1, _REGIONS, width))
        self.image = ImageEncoder(ImageSettings(encoder="linear"), width, size)
        words = nn.Embedding(len(vocabulary), _WORD_SIZE, padding_idx=0)
        self.text = WordEncoder(words, size)

    def encode_images(self, batch: Batch) -> Embeddings:
        features, padding = batch.features, batch.region_padding
        if self.reads_pixels:
            features = self.made_up.expand(len(batch.image_ids), -1, -1)
            padding = all_real(len(features), features.shape[1], features.device)
        regions = normalize(self.image(features, padding).local, dim=2)
        return Embeddings(regions, mask=padding.mask)

    def encode_texts(self, batch: Batch) -> Embeddings:
        states = self.text(batch.words, batch.word_padding).states
        return Embeddings(normalize(states, dim=2), mask=batch.word_mask)

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        """Scores in blocks. Captions of similar length share a block and so need little padding."""
        order = texts.parts()["mask"].sum(1).argsort()
        pair_numbers = images.vectors.shape[1] * (texts.vectors.shape[1] + self.size)
        pairs = max(1, _NUMBERS[images.vectors.device.type] // pair_numbers)
        images_at_once = min(_MOST_IMAGES, pairs)
        parts = [images.rows(run) for run in runs(len(images), images_at_once)]
        regions = [(part.vectors, part.parts()["mask"]) for part in parts]
        columns = []
        for run in runs(len(texts), pairs // images_at_once):
            mask = texts.parts()["mask"][order[run]]
            longest = int(mask.sum(1).max())
            words = texts.vectors[order[run], :longest], mask[:, :longest]
            scores = [cross_attention(*words, *part, _TEMPERATURE) for part in regions]
            columns.append(torch.cat(scores, 1).T)
        return torch.cat(columns, 1)[:, order.argsort()]

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        return {"triplet": triplet(self.score(images, texts), batch.image_index, _MARGIN)}


def cross_attention(
    context: Tensor,
    context_mask: Tensor,
    elements: Tensor,
    element_mask: Tensor,
    temperature: float,
) -> Tensor:
    """The mean over elements l of `cos(x_l, a_l)`, where `a_l` is the context that l attends to.

    Cosines of a part r of the context with the elements of a set are clipped at zero and
    L2-normalised over the elements; `a_l = sum_r softmax_r(temperature * normalised) c_r`.

    SCAN's text-to-image form has an image's regions as context and a caption's words as elements;
    its image-to-text form has the words as context and the regions as elements.

    Args:
        context, elements: `(n, R, D)` and `(m, L, D)`, L2-normalised.
        context_mask, element_mask: `(n, R)` and `(m, L)`, True where real.
        temperature: SCAN's lambda_1, an inverse temperature.

    Returns:
        `(n, m)` in [-1, 1]. Memory grows with `n m L (R + D)`: use small blocks.

    References:
        Lee et al., Stacked Cross Attention for Image-Text Matching (SCAN), ECCV 2018, section 3.1,
        with average pooling.
    """
    context, elements = full_precision(context), full_precision(elements)
    cosines = torch.einsum("nrd,mld->nmlr", context, elements).relu()
    cosines = cosines.masked_fill(~element_mask[None, :, :, None], 0.0)
    normalised = cosines / (cosines.norm(dim=2, keepdim=True) + _EPSILON)
    logits = (temperature * normalised).masked_fill(~context_mask[:, None, None], -torch.inf)
    attended = torch.einsum("nmlr,nrd->nmld", logits.softmax(3), context)
    lengths = attended.norm(dim=3) * elements.norm(dim=2)
    cosines = (attended * elements).sum(3) / lengths.clamp(min=_EPSILON)
    return (cosines * element_mask).sum(2) / element_mask.sum(1)
