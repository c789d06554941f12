"""The model card: README.md of a trained model's folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manymatch.config.preset import Preset

_CARD = """\
---
library_name: manymatch
pipeline_tag: text-to-image
tags: [image-text-retrieval, {method}]
---

# {method} on {dataset}

An image-text retrieval model, trained with ManyMatch. The model ranks pictures by a text and texts
by a picture.

    import manymatch

    model = manymatch.load("FOLDER")
    images = model.encode_images(["a.jpg", "b.png"])
    texts = model.encode_texts(["a red bird above a table"])
    model.score(images, texts)

## Training

- Method: {method}. All settings are in `preset.yaml`.
- Data: the training split of {dataset}.
- Image features: {features} ({preprocessing}).
- Scene graphs: {parser}.
- Validation split: rsum {rsum} of 600, epoch {epoch} of {epochs}. Setting: {setting}.

## Limits

- The model knows the words and the kinds of pictures of its training data, and no others.
- A score says which picture fits a text better. A score is not a probability.
- The data set's captions may hold stereotypes about people, and the model learns them.
- Do not use the model to identify people or to decide about them.

## Licence

The code is under Apache-2.0. The terms of the data set and of the pretrained networks apply to the
weights as well.
"""


def model_card(preset: Preset, facts: Mapping[str, Any]) -> str:
    """The text of the card.

    Args:
        preset: the settings of the training.
        facts: the content of `model.json`. What is missing is called "unknown".
    """
    rsum = facts.get("rsum")
    return _CARD.format(
        method=preset.method,
        dataset=facts.get("dataset", "unknown"),
        features=preset.features,
        preprocessing=facts.get("extraction", {}).get("preprocessing", "unknown"),
        parser=facts.get("parser") or "not used",
        rsum="unknown" if rsum is None else f"{rsum:.1f}",
        epoch=facts.get("epoch", "unknown"),
        epochs=facts.get("epochs", "unknown"),
        setting=preset.setting,
    )
