"""The output of image and text encoders."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from manymatch.batch.padding import Padding
from manymatch.util.errors import ConfigError


@dataclass(frozen=True)
class Encoding:
    """The local features of n samples, their padding, and the global features.

    R is the number of regions, cells or words, W the size of local features, D the size of global
    features. Many methods need no global features: `globals` computes them.
    """

    local: Tensor  # (n, R, W), zero where padded
    padding: Padding  # of (n, R)
    globals: Callable[[], Tensor]  # (n, D)


def check_local_sizes(method: str, size: int, image: Any, text: Any) -> None:
    """Check that encoders have local features of the embedding's `size`.

    Raises:
        ConfigError: one of the two has another `local_size`.
    """
    for group, encoder in (("image", image), ("text", text)):
        if encoder.local_size != size:
            raise ConfigError(
                f"method '{method}': {group}: local features have size {encoder.local_size}, but "
                f"the embedding has size {size}. Set an encoder whose local features have this "
                "size, such as 'regions' for images and local: states for captions."
            )
