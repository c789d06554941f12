"""A trained model in use: pictures and texts in, embeddings, scores and explanations out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from PIL import Image
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.batch.caption_text import caption_fault
from manymatch.batch.collate import ImageItem, collate, collate_captions
from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.batch.scene_graph import NO_GRAPH
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.answer import Explanation, Right, Side
from manymatch.model.checkpoint import HASHES, copy_model, load_model
from manymatch.model.embed import check_finite, inference
from manymatch.model.explanation import explanation
from manymatch.model.facts import FACTS, facts
from manymatch.model.pictures import AnyPicture, PictureFeatures, batches_of, refuse_single
from manymatch.model.places import resolve_model, upload_model
from manymatch.model.scores import Score, check_asking, check_pair, numbers_of, score_all_pairs
from manymatch.networks.device import pick_device
from manymatch.util.arguments import checked
from manymatch.util.errors import CheckpointError, DataError
from manymatch.util.progress import track

if TYPE_CHECKING:
    from spacy.language import Language

_LOADING = Lock()  # threads that import modules of one package at once can get it half imported


@checked
def load(
    model: str | Path,
    device: str = "auto",
    *,
    image_weights: str | Path | None = None,
    regions: tuple[int, int] = (36, 36),
) -> Model:
    """Load a trained model.

    Args:
        model: the folder of the model, such as "models/scenes/cora"; or a model of the package,
            such as "flickr8k-dive"; or a name on the Hugging Face hub, which may end in "@" and a
            revision. Only safetensors and JSON are read.
        device: "auto" for the GPU if there is one, "cpu", "cuda" or "cuda:1".
        image_weights: the weights of the image features' backbone, if not its default ones.
        regions: the fewest and the most regions of a picture, for features of a detector.

    Raises:
        CheckpointError: there is no such model, or a file of the model is damaged.
        ConfigError: this machine does not have the device, or an argument has another type.
    """
    folder = resolve_model(str(model))
    weights = None if image_weights is None else str(image_weights)
    with _LOADING:
        return Model(folder, pick_device(device), weights, regions)


class Model:
    """A trained model, ready for pictures and texts; `load` makes one.

    Embeddings lie on the CPU, in float32. The other items of a call change the embedding of a
    picture or a text by no more than rounding does, about 1e-6: libraries multiply matrices of
    other sizes in another order.

    Attributes:
        method: the networks and the score.
        vocabulary: the words or wordpieces that the model knows.
        preset: the settings of the training.
        facts: the content of `model.json`: data set, image features, parser, hashes, validation.
        device: where the networks run.
    """

    def __init__(
        self, folder: Path, device: torch.device, weights: str | None, regions: tuple[int, int]
    ) -> None:
        self._folder = folder
        self.method, self.preset, self.vocabulary = load_model(folder)
        self.method.to(device)
        self.device = device
        self.facts: dict[str, Any] = facts(folder)
        extraction = self.facts.get("extraction")
        if not extraction or (self.method.reads_graphs and self.facts.get("parser") is None):
            raise CheckpointError(
                f"{folder / FACTS}: the image features or the parser are missing, because an older "
                "version wrote the shards or the model. Write the shards and train the model again."
            )
        self._pictures = PictureFeatures(self.preset.features, extraction, device, weights, regions)
        self._numbering = Numbering(self.vocabulary)

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.method.parameters())
        return (
            f"Model({str(self._folder)!r}, {self.preset.method!r} on {self.preset.features!r}, "
            f"{parameters:,} parameters, {str(self.device)!r})"
        )

    @checked
    def encode_images(
        self, images: Iterable[AnyPicture], batch_size: int = 64, *, progress: bool = True
    ) -> Embeddings:
        """Embed n pictures: `vectors (n, K, D)`.

        Args:
            images: files, PIL images, arrays `(h, w, 3)` or `(h, w)` of bytes, or a loader that
                yields them. The next pictures are decoded while others are encoded.
            batch_size: pictures that the method encodes at once.
            progress: whether to show the progress on standard error.

        Raises:
            ConfigError, CheckpointError: the model's image features cannot be extracted here.
            DataError: there are no images, `images` is a single one, or a picture cannot be read.
        """
        refuse_single(images)
        items = self._pictures.items(images)
        if progress:
            items = track(items, "images", len(images) if isinstance(images, Sized) else None)
        return self.encode_items(items, batch_size)

    def encode_items(self, items: Iterable[ImageItem], batch_size: int = 64) -> Embeddings:
        """Embed n pictures whose image features are known, as `encode_images` embeds pictures.

        Raises:
            DataError: there are no items.
        """
        batches = (collate(batch) for batch in batches_of(items, batch_size, ImageItem))
        return self._embedded(self.method.encode_images, batches, "images")

    def picture_reader(self) -> Callable[[Path], Image.Image]:
        """A function that reads a picture file as a picture no larger than the image features need.

        `encode_images` gives the same embeddings for these pictures as for their files, and many of
        them fit in memory. The function raises a `DataError` for a file that cannot be read.
        Several threads may call the function.

        Raises:
            ConfigError, CheckpointError: the model's image features cannot be extracted here.
        """
        return self._pictures.reader()

    def encode_texts(self, texts: Iterable[str], batch_size: int = 256) -> Embeddings:
        """Embed m texts: `vectors (m, K, D)`.

        Raises:
            DataError: there are no texts, there is no list, or one is not a valid caption.
        """
        entries = map(self.parse, batches_of(texts, batch_size))
        return self.encode_captions(itertools.chain.from_iterable(entries), batch_size)

    def parse(self, texts: Sequence[str]) -> list[CaptionEntry]:
        """The texts as the model reads them: with scene graphs if its method needs these.

        Raises:
            DataError: a text is no text, empty, too long or not printable.
        """
        refuse_single(texts)
        for number, text in enumerate(texts):
            if fault := caption_fault(text):
                raise DataError(f"text {number}: {fault}")
        parsed = [NO_GRAPH] * len(texts)
        if self.method.read_graph:
            from manymatch.scene_graphs.parser import graphs  # spaCy takes seconds to import

            parsed = list(map(self.method.read_graph, graphs(self._parser, texts, Counter())))
        numbers = map(str, range(len(texts)))
        return list(itertools.starmap(CaptionEntry, zip(numbers, texts, parsed, strict=True)))

    def encode_captions(
        self, captions: Iterable[CaptionEntry], batch_size: int = 256
    ) -> Embeddings:
        """Embed m texts that `parse` has read, as `encode_texts` embeds texts."""
        batches = map(self._text_batch, batches_of(captions, batch_size, CaptionEntry))
        return self._embedded(self.method.encode_texts, batches, "texts")

    def score(
        self, images: Embeddings, texts: Embeddings, query: Literal["text", "image"] = "text"
    ) -> Tensor:
        """Scores `(n_images, n_texts)` by which retrieval ranks; a higher score is better.

        Args:
            images, texts: what `encode_images` and `encode_texts` gave, or `Embeddings(vectors)`
                of arrays from elsewhere, which have no `origin` to be compared with this model.
            query: the side of the query. The scores of the two directions differ for few methods.

        Raises:
            DataError: embeddings of another model or side, of different sizes, or not finite.
            ConfigError: an unknown side asks.
        """
        check_asking(query)
        method = self.method
        check_pair(images, texts, method, self.identity)
        ranking_score = (method.t2i_score if query == "text" else None) or method.score
        return score_all_pairs(partial(self._block, ranking_score), images, texts)

    def precision(
        self, scores: ArrayLike, query: Literal["text", "image"] = "text"
    ) -> np.ndarray | None:
        """The share in 0..1 of right results at these scores, as the validation split knows it.

        `right` says which results count as right. The share is that of a gallery as large as the
        validation split: a larger gallery has more wrong results at the same score. None if the
        model knows none, or the validation split has fewer than 100 images.

        Args:
            scores: scores of any shape.
            query: the side of the query.

        Raises:
            DataError, ConfigError: the scores are no numbers, or an unknown side asks.
        """
        check_asking(query)
        numbers = numbers_of(scores, "scores")
        return None if self.right is None else np.interp(numbers, *self.facts["precision"][query])

    @property
    def identity(self) -> str:
        """What tells models apart: the `origin` of embeddings has it."""
        return " ".join(self.facts[key] for key in HASHES.values())

    @property
    def right(self) -> Right | None:
        """Which results `precision` counts as right, and on how many images; None: no precision."""
        return Right.of(self.facts)

    def explain(self, image: AnyPicture, text: str) -> Explanation:
        """What the method knows about the score of one picture and one text."""
        method = self.method
        (item,), (entry,) = self._pictures.items([image]), self.parse([text])
        with inference(method, self.device):
            images = method.encode_images(collate([item]).to(self.device)).to("cpu")
            texts = method.encode_texts(self._text_batch([entry]).to(self.device)).to("cpu")
        boxes = self._pictures.boxes(image, item, method)
        ranking_score = method.t2i_score or method.score
        return explanation(
            partial(self._block, ranking_score), images, texts, boxes, entry, self.vocabulary
        )

    @checked
    def save(self, folder: str | Path, *, half: bool = False) -> None:
        """Copy the model to the new folder `folder`, which `load` reads.

        Args:
            half: whether the copy stores its weights in float16, in half of the bytes. Embeddings
                then differ by about 1e-3. The copy counts as another model.

        Raises:
            StorageError: the folder exists, or cannot be written.
            CheckpointError: a weight is too large for float16.
        """
        copy_model(self._folder, Path(folder), half)

    @checked
    def push_to_hub(self, name: str, *, private: bool = True) -> str:
        """Upload the model to the Hugging Face hub as `name` (OWNER/MODEL); return its address.

        The account is the one of `hf auth login`, or of the variable HF_TOKEN.
        """
        return upload_model(self._folder, name, private)

    @cached_property
    def _parser(self) -> Language:
        from manymatch.scene_graphs.parser import load_model

        return load_model(self.facts["parser"])

    def _block(self, ranking_score: Score, images: Embeddings, texts: Embeddings) -> Tensor:
        with inference(self.method, self.device):
            return ranking_score(images.to(self.device), texts.to(self.device)).float().cpu()

    def _text_batch(self, entries: list[CaptionEntry]) -> Batch:
        return collate_captions([self._numbering.caption(entry) for entry in entries])

    def _embedded(
        self, encode: Callable[[Batch], Embeddings], batches: Iterable[Batch], items: Side
    ) -> Embeddings:
        parts, count = [], 0
        with inference(self.method, self.device):
            for batch in batches:
                part = encode(batch.to(self.device)).scored().to("cpu")
                numbers = range(count, count + len(part))
                check_finite(part.vectors, [f"{items} {number}" for number in numbers])
                count += len(part)
                parts.append(part)
        if not parts:
            raise DataError(f"there are no {items} to encode")
        return replace(Embeddings.join(parts), origin=(items, self.identity))
