"""Why a picture and a text have their score: elements, attention, entities, variances."""

from collections.abc import Callable, Iterable

import numpy as np
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.batch.pieces import Pieces
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.answer import Explanation, Table
from manymatch.results.retrieval import Graph
from manymatch.similarities.matchings import best_columns


def explanation(
    score: Callable[[Embeddings, Embeddings], Tensor],
    image: Embeddings,
    text: Embeddings,
    boxes: np.ndarray | None,
    caption: CaptionEntry,
    vocabulary: AnyVocabulary,
) -> Explanation:
    """Explain the score of one picture and one text.

    Args:
        score: the score by which retrieval ranks.
        image, text: their embeddings, with all parts.
        boxes: `(R, 4)` the picture's regions, if known.
        caption: the text with its scene graph, which is empty if the method reads none.
        vocabulary: numbers the text's words.
    """
    (words,) = words_read([caption.text], vocabulary)
    cosines = normalize(image.vectors[0], dim=1) @ normalize(text.vectors[0], dim=1).T
    wide = cosines if cosines.shape[0] <= cosines.shape[1] else cosines.T
    matched = list(enumerate(best_columns(wide[:, :, None, None]).flatten().tolist()))
    entities = None
    if text.entities is not None:
        entities = score(image, Embeddings(text.entities[:, None]))[0].tolist()
    variances = [
        None if one.log_variance is None else one.log_variance.exp().mean().item()
        for one in (image, text)
    ]
    return Explanation(
        score=float(score(image, text)),
        cosines=cosines.tolist(),
        matched=matched if wide is cosines else sorted((row, column) for column, row in matched),
        image_attention=_attention(image, None if boxes is None else len(boxes)),
        boxes=None if boxes is None else boxes.tolist(),
        words=words,
        text_attention=_attention(text, len(words)),
        image_variance=variances[0],
        text_variance=variances[1],
        graph=Graph.model_validate(caption.graph.to_dict()) if caption.graph.objects else None,
        entity_scores=entities,
    )


def _attention(embeddings: Embeddings, inputs: int | None) -> Table | None:
    """The attention over the first `inputs` regions or words; None: over all."""
    if embeddings.attention is None:
        return None
    table: Table = embeddings.attention[0, :, :inputs].tolist()
    return table


def words_read(texts: Iterable[str], vocabulary: AnyVocabulary) -> list[list[str]]:
    """The words or wordpieces of each text, in the order of the text encoder's local features."""
    numbers = map(Numbering(vocabulary).words, texts)
    if isinstance(vocabulary, Pieces):
        ends = vocabulary.special
        return [vocabulary.shown([*ends.first, *ids, *ends.last]) for ids in numbers]
    return [[vocabulary.words[number] for number in caption] for caption in numbers]
