"""How many pictures, from which seed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from manymatch.config.strict import Strict

Images = Annotated[int, Field(ge=0, le=1_000_000)]


class ScenesSettings(Strict):
    """Image i of a split depends on `seed`, `twins` and `image_size` alone, never on the counts."""

    seed: Annotated[int, Field(ge=0)] = 0
    train: Images = 1200
    validation: Images = 300
    test: Images = 300
    image_size: Annotated[int, Field(ge=32, le=1024)] = 224
    """Width and height in pixels."""
    twins: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    """Share of the images that come in pairs that differ in one binding."""
