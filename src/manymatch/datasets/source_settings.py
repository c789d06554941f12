"""The settings that datasets with files of their own have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from manymatch.config.strict import Strict
from manymatch.fetching.gather import Gatherer, Usual


class SourceSettings(Strict):
    """`sources.NAME` of params.yaml: a folder, a source for each file, or both.

    `folder` holds files under their usual names. `manymatch.fetching.gather` says which source is
    used where a file is in the folder and has its own source too.
    """

    folder: str | None = None

    def gatherer(
        self,
        name: str,
        raw: Path,
        usual: Usual,
        optional: Sequence[str] = (),
        has_all: Callable[[Path], bool] = lambda path: True,
    ) -> Gatherer:
        """Return what obtains the files of dataset `name`.

        Args:
            usual: the keys of these settings that name files, with the files' usual names.
            optional: further keys, whose files have no usual name.
            has_all: see `Gatherer`.
        """
        given = {key: getattr(self, key) for key in (*usual, *optional)}
        return Gatherer(name, raw, self.folder, usual, given, has_all)


class ImageSettings(SourceSettings):
    """Settings of a dataset whose images may be absent or incomplete."""

    without_images: bool = False
    """Use the dataset without images, with published features."""
    only_present: bool = False
    """Leave out images whose image file is missing."""
