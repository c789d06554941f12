"""CORA: a caption is a scene graph, an image a set of regions; entities are matched too.

Pham et al., Composing Object Relations and Attributes for Image-Text Matching, CVPR 2024.

A caption's phrases (objects, attributes, relation labels) are read by one concept encoder, a GRU
over word vectors or BERT. Graph attention first binds attributes to their objects, which gives the
entities e_k; then objects exchange along relations, and GPO over the objects gives the caption's
embedding t. An image's regions pass an MLP and one self-attention layer; GPO over them gives v.
Scores are cosines.

The loss has three terms: a triplet loss with hardest negatives on (v, t), a contrastive loss that
draws images to their captions AND entities, and a specificity loss by which a caption must score
higher than each of its own entities.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import torch
from pydantic import model_validator
from torch import Tensor, nn

from manymatch.batch.batch import Batch
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Count, NonNegative, Positive, Probability
from manymatch.losses.contrastive import (
    entity_contrastive,
    entity_positives,
    info_nce,
    positive_pairs,
    positive_scores,
)
from manymatch.losses.triplets import specificity, triplet
from manymatch.methods.shared.embeddings import flat
from manymatch.methods.shared.matching import check_weights, weighted
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.methods.shared.products import ProductForm, ProductQuery, largest_product
from manymatch.networks.encoders.bert import BertSettings, token_encoder
from manymatch.networks.encoders.hub_text import HubTextSettings
from manymatch.networks.encoders.image import ImageEncoder, ImageSettings, PixelNetworks
from manymatch.networks.encoders.scene_graph import (
    ConceptEncoder,
    GraphSettings,
    PieceConceptEncoder,
    SceneGraphEncoder,
)
from manymatch.networks.encoders.word_vectors import WordVectors, word_embedding
from manymatch.networks.layers.gru import Directions
from manymatch.networks.layers.segments import scattered
from manymatch.networks.pooling.global_pooling import GPO
from manymatch.scene_graphs.verbs import GraphReader, add_verbs, as_parsed
from manymatch.similarities.vectors import cosine, unit
from manymatch.util.errors import DataError


class CORASettings(GraphSettings, PixelNetworks):
    """The defaults are the paper's, except for `object_edges` and `concept_directions`, which are
    the released code's."""

    concept_encoder: Literal["gru", "bert", "hf", "mean"] = "gru"
    """What reads a phrase. `hf`: any text model of transformers. `mean`, not in the paper: the mean
    of its word vectors."""
    word_vectors: WordVectors = "glove"
    word_size: Count = 300
    """Size of learned word vectors and of the vectors in `glove_file`."""
    glove_file: str | None = None
    """A text file of GloVe vectors; null: the vectors of the package, of 50 dimensions."""
    concept_size: Count = 300
    """Size of the final state of the concept encoder's GRU, both directions together."""
    concept_directions: Directions = "forward"
    """The paper has a bi-GRU (3.2, 4.2, 6.2), the released code a GRU of one direction, or the
    average of two."""
    bert: BertSettings = BertSettings(tuning="prefix")
    hf: HubTextSettings | None = None
    """`hf`: the text model."""
    verb_attributes: bool = True
    """Whether the verb of a relation is an attribute of its subject, too, as in the entities of the
    paper's figures 5 and 6 ("man falling", "spectators watching")."""
    region_attention: bool = True
    region_position_size: Count | None = 16
    """Size of the code of the regions' order; null where the order means nothing."""
    feature_dropout: Probability = 0.0
    concept_dropout: Probability = 0.0
    embedding_dropout: Probability = 0.0
    margin: Positive = 0.4
    temperature: Positive = 0.01
    hardest_weight: NonNegative = 1.0
    contrastive_weight: NonNegative = 0.25
    specificity_weight: NonNegative = 3.0
    caption_weight: NonNegative = 0.0
    """Weight of InfoNCE over whole captions alone, which is not in the paper. The contrastive loss
    has few captions among many entities: with little data, it teaches captions too slowly."""
    warmup_epochs: NonNegative = 1.0
    """Number of epochs over which the loss grows from zero to its full value."""

    @model_validator(mode="after")
    def _sizes_and_weights_fit(self) -> "CORASettings":
        if self.size % self.heads:
            raise ValueError(f"size {self.size} is not a multiple of {self.heads} heads")
        if self.concept_directions == "concatenate" and self.concept_size % 2:
            raise ValueError(
                f"concept_size {self.concept_size} is odd: two directions cannot share it"
            )
        if (self.concept_encoder == "hf") != (self.hf is not None):
            raise ValueError("concept_encoder: hf and the group 'hf' belong together")
        check_weights(self, "hardest_weight", "contrastive_weight", "caption_weight")
        return self


@dataclass(frozen=True)
class CaptionEmbeddings(Embeddings):
    """`known_names (W,)` and `known_attributes (W, A)`, as those of entities: what the captions say
    of their images before objects and attributes are dropped; None without drops."""

    known_caption: Tensor | None = field(default=None, metadata=flat("known_caption"))
    known_names: Tensor | None = field(default=None, metadata=flat("known_caption"))
    known_attributes: Tensor | None = field(default=None, metadata=flat("known_caption"))


class CORA(Method):
    """Scene graphs of captions against regions of images."""

    title = "CORA"
    paper = "Pham et al., CVPR 2024"
    Settings = CORASettings
    reads_graphs = True

    def __init__(
        self, settings: CORASettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.settings = settings
        regions = ImageSettings(
            encoder="regions",
            dropout=settings.feature_dropout,
            position_size=settings.region_position_size,
            attention_heads=settings.heads if settings.region_attention else None,
            cnn=settings.cnn,
            backbone=settings.backbone,
        )
        self.regions = ImageEncoder(regions, feature_width, settings.size)
        self.graph = SceneGraphEncoder(settings, _concept_encoder(settings, vocabulary))
        self.pool_regions, self.pool_objects = GPO(), GPO()
        self.dropout = nn.Dropout(settings.embedding_dropout)
        self.warm_up = 1.0

    @classmethod
    def graph_reader(cls, settings: CORASettings) -> GraphReader:
        return add_verbs if settings.verb_attributes else as_parsed

    @classmethod
    def vocabulary(
        cls, settings: CORASettings, words: Vocabulary, captions: Iterable[str]
    ) -> AnyVocabulary:
        if settings.hf is not None:
            return settings.hf.vocabulary()
        return settings.bert.vocabulary() if settings.concept_encoder == "bert" else words

    def encode_images(self, batch: Batch) -> Embeddings:
        regions = self.regions(batch.features, batch.region_padding)
        return Embeddings(self._normalised(self.pool_regions(regions.local, regions.padding)))

    def encode_texts(self, batch: Batch) -> Embeddings:
        graphs = batch.graphs
        if graphs is None:
            raise DataError(
                "method 'cora' needs scene graphs, but the shards have none. Write the shards "
                "again with the scene graphs of the captions."
            )
        encoded = self.graph(graphs)
        nodes = scattered(encoded.nodes, encoded.padding)
        said = graphs.undropped
        known = {} if said is None else {f"known_{name}": part for name, part in vars(said).items()}
        return CaptionEmbeddings(
            vectors=self._normalised(self.pool_objects(nodes, encoded.padding)),
            entities=self._normalised(encoded.entities),
            entity_caption=graphs.object_caption,
            entity_names=graphs.object_names,
            entity_attributes=graphs.object_attributes,
            **known,
        )

    def products(self, side: str, beta: float | None = None) -> ProductForm | None:
        if beta is None:
            return super().products(side)
        # A gallery of captions has any number of entities for each item.
        return ProductForm(partial(_entity_query, beta)) if side == "images" else None

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        settings, image_index, entities = self.settings, batch.image_index, texts.parts()
        left_out = batch.left_out
        caption = entities["entity_caption"]
        entity_image = image_index[caption]
        concepts = torch.cat([texts.vectors, entities["entities"][:, None]])
        all_scores = cosine(images.vectors, concepts)
        scores, entity_scores = all_scores.split([len(image_index), len(caption)], 1)
        asked = entities["entity_names"], entities["entity_attributes"]
        # A dropped object is still in the image: the captions as they were say what is true of it.
        known = "known" if "known_caption" in entities else "entity"
        positive_entities = entity_positives(
            image_index[entities[f"{known}_caption"]],
            entities[f"{known}_names"],
            entities[f"{known}_attributes"],
            len(images),
            asked,
        )
        # An entity of a caption that is true of an image is true of the image, too.
        concepts_left_out = (
            None
            if left_out is None
            else torch.cat([left_out, left_out[:, caption] & ~positive_entities], 1)
        )

        return weighted(
            self.warm_up,
            hardest=(
                settings.hardest_weight,
                lambda: triplet(scores, image_index, settings.margin, left_out=left_out),
            ),
            contrastive=(
                settings.contrastive_weight,
                lambda: entity_contrastive(
                    all_scores,
                    torch.cat([positive_pairs(scores, image_index), positive_entities], 1),
                    settings.temperature,
                    concepts_left_out,
                ),
            ),
            specificity=(
                settings.specificity_weight,
                lambda: specificity(
                    positive_scores(scores, image_index),
                    positive_scores(entity_scores, entity_image),
                    caption,
                    settings.margin,
                ),
            ),
            captions=(
                settings.caption_weight,
                lambda: info_nce(scores, image_index, settings.temperature, left_out),
            ),
        )

    def start_step(self, epochs: float) -> None:
        warmup = self.settings.warmup_epochs
        self.warm_up = min(1.0, epochs / warmup) if warmup else 1.0

    def _normalised(self, vectors: Tensor) -> Tensor:
        return unit(self.dropout(vectors))


def _entity_query(beta: float, query: Embeddings, longest: float) -> ProductQuery:
    """The re-ranked score (eq. 14): the caption's and that of its least likely entity."""
    if query.entities is None or not len(query.entities):
        raise DataError("the query has no entities to re-rank by. Search by the text of a caption.")

    def reduce(products: Tensor, mask: Tensor | None) -> Tensor:
        return beta * products[0, 0] + (1 - beta) * products[0, 1:].amin(0)

    vectors = torch.cat([query.vectors[0], query.entities])
    return ProductQuery(vectors, reduce, largest_product(vectors, longest))


def _concept_encoder(settings: CORASettings, vocabulary: AnyVocabulary) -> nn.Module:
    size, dropout = settings.size, settings.concept_dropout
    if settings.concept_encoder in ("bert", "hf"):
        reads = token_encoder(settings.hf, settings.bert, vocabulary)
        return PieceConceptEncoder(reads, size, dropout)
    words = word_embedding(
        settings.word_vectors, vocabulary, settings.word_size, settings.glove_file
    )
    hidden = settings.concept_size if settings.concept_encoder == "gru" else None
    return ConceptEncoder(words, hidden, size, settings.concept_directions, dropout)
