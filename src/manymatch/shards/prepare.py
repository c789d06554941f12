"""From a stored image to an item of a batch: its captions are drawn, numbered and augmented."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from manymatch.config.preset import Augmentation
from manymatch.shards.augment import CaptionAugmenter, drop_regions
from manymatch.shards.collate import Item
from manymatch.shards.numbering import Numbering
from manymatch.shards.sample import CaptionEntry, Sample
from manymatch.text.wordpieces import AnyVocabulary


class Preparation:
    """Draws `captions_per_image` captions (None: all) and augments the image and the captions.

    All draws depend only on (seed, epoch, image).
    """

    def __init__(
        self,
        vocabulary: AnyVocabulary,
        captions_per_image: int | None,
        augmentation: Augmentation | None,
        shuffle: tuple[int, int] | None,
    ) -> None:
        self._numbering = Numbering(vocabulary)
        self._captions_per_image = captions_per_image
        self._augmentation = augmentation or Augmentation()
        self._augment = CaptionAugmenter(
            self._augmentation, vocabulary.MASK, vocabulary.ordinary, vocabulary.UNK
        )
        self._shuffle = shuffle

    def __call__(self, sample: Sample) -> Item:
        rng = Random(f"{self._shuffle} {sample.key}")
        captions = [self._numbering.caption(entry) for entry in self._draw(sample.captions, rng)]
        features, real = drop_regions(sample.features, self._augmentation.region_drop, rng)
        return Item(
            image_id=sample.image_id,
            features=features,
            real=real,
            boxes=sample.boxes,
            captions=[self._augment(caption, rng) for caption in captions],
        )

    def _draw(self, entries: Sequence[CaptionEntry], rng: Random) -> Sequence[CaptionEntry]:
        count = self._captions_per_image
        if count is None or count >= len(entries):
            return entries
        return [entries[number] for number in sorted(rng.sample(range(len(entries)), count))]
