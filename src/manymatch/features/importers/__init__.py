"""Import features that others have extracted and published.

To add a format, write a function `open_FORMAT(path, images, max_regions) -> Published` (see
`importing.py`), and add one line to `FORMATS`.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from manymatch.util.errors import ConfigError, nearest

if TYPE_CHECKING:
    from manymatch.features.importers.importing import ImageTable, Published

FORMATS = {
    "butd_tsv": "butd_tsv",
    "scan": "precomp",
    "vse_infinity": "precomp",
    "npy_folder": "precomp",
    "clips": "clip_vectors",
}
"""Name in the configuration -> module of this package."""


def entry_point(name: str) -> str:
    """Return MODULE:FUNCTION of the function that opens features in the format `name`.

    Raises:
        ConfigError: no format has this name; the message names the nearest one.
    """
    if name not in FORMATS:
        raise ConfigError(f"unknown format of features '{name}'{nearest(name, FORMATS)}")
    return f"{__name__}.{FORMATS[name]}:open_{name}"


def open_published(
    name: str, path: Path, images: "ImageTable", max_regions: int | None
) -> "Published":
    """Open the published features at `path`, in the format called `name`, for all `images`.

    Raises:
        ConfigError: no format has this name.
        DataError: the features are damaged, or an image has no features.
    """
    module, function = entry_point(name).split(":")
    published: Published = getattr(import_module(module), function)(path, images, max_regions)
    return published
