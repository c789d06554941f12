"""A small set method that is not trained: K mixtures of the regions or words, MIL, attention."""

from small_methods import SMALL
from torch import nn
from torch.nn import functional

from manymatch.config.strict import Strict
from manymatch.methods import METHODS
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.similarities.sets import mil

METHODS["tiny_sets"] = "tiny_sets"  # so that presets can name it
SMALL["tiny_sets"] = {}


class TinySetsSettings(Strict):
    size: int = 8
    images: int = 3
    texts: int = 2
    """Elements of each modality's sets."""
    attention: bool = True


class TinySets(Method):
    Settings = TinySetsSettings

    def __init__(self, settings, vocabulary, feature_width):
        super().__init__(settings, vocabulary, feature_width)
        self.settings = settings
        self.regions = nn.Linear(feature_width, settings.size)
        self.words = nn.Embedding(len(vocabulary), settings.size)
        self.image_queries = nn.Linear(settings.size, settings.images)
        self.text_queries = nn.Linear(settings.size, settings.texts)

    def encode_images(self, batch):
        return self._sets(self.regions(batch.features), batch.region_mask, self.image_queries)

    def encode_texts(self, batch):
        return self._sets(self.words(batch.words), batch.word_mask, self.text_queries)

    def _sets(self, local, mask, queries):
        weights = queries(local).mT.masked_fill(~mask[:, None], float("-inf")).softmax(2)
        vectors = functional.normalize(weights @ local, dim=2)
        return Embeddings(vectors, attention=weights if self.settings.attention else None)

    def score(self, images, texts):
        return mil(images.vectors, texts.vectors)

    def loss(self, images, texts, batch):
        return {"own": -self.score(images, texts)[batch.image_index, range(len(texts))].mean()}
