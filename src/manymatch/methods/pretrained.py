"""Pretrained: the two-tower model as it is, which is the zero-shot line of every table.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021.

An image is its projected vector, which the store of features holds (`output: projected`). A caption
is the vector that the text tower of the same model gives, with or without a prompt around the
caption. Both vectors are L2-normalised and compared by their cosine. Nothing is trained.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field, field_validator
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.batch.pieces import Pieces
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.strict import Strict
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.networks.backbones.text_model import hub_pieces
from manymatch.networks.encoders.hub_text import TextTower
from manymatch.similarities.vectors import unit
from manymatch.util.errors import ConfigError


class PretrainedSettings(Strict):
    """The two-tower model, and the prompt around each caption."""

    model: Annotated[str, Field(min_length=1)]
    """A folder, or NAME@REVISION on the Hugging Face hub: the model of the image features."""
    prompt: str | None = None
    """A text with one "{}", which stands for the caption: "a photo of {}". Null: the caption."""

    @field_validator("prompt")
    @classmethod
    def _holds_the_caption(cls, prompt: str | None) -> str | None:
        if prompt is not None and prompt.count("{}") != 1:
            raise ValueError("expected a text with one {}, such as a photo of {}")
        return prompt


class Pretrained(Method):
    """The cosine of the vectors that a two-tower model gives for an image and a caption."""

    title = "Pretrained"
    paper = "Radford et al., ICML 2021"
    Settings = PretrainedSettings
    learns = False

    def __init__(
        self, settings: PretrainedSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.settings = settings
        self.text = TextTower(vocabulary)
        if self.text.width not in (0, feature_width):
            raise ConfigError(
                f"method 'pretrained': image features of width {feature_width}, but the texts have "
                f"{self.text.width}. Set output: projected, and one model for both"
            )

    @classmethod
    def vocabulary(
        cls, settings: PretrainedSettings, words: Vocabulary, captions: Iterable[str]
    ) -> Pieces:
        return hub_pieces(settings.model, settings.prompt or "{}")

    def check_features(self, attributes: Mapping[str, str]) -> None:
        fault = f"features of output '{attributes.get('output', 'none')}'"
        if attributes.get("output") == "projected":
            if attributes.get("weights_sha256") == self.text.weights_sha256:
                return
            fault = f"features of the model '{attributes.get('model')}' with other weights"
        raise ConfigError(
            f"method 'pretrained': {fault}. Set 'kind: hf', 'output: projected' and 'model: "
            f"{self.settings.model}' in the extraction of the features"
        )

    def encode_images(self, batch: Batch) -> Embeddings:
        return Embeddings(unit(batch.features))

    def encode_texts(self, batch: Batch) -> Embeddings:
        return Embeddings(unit(self.text(batch.words, batch.word_mask).states))

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        """No terms: nothing learns."""
        return {}
