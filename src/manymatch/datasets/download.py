"""The stage `download`: a dataset's own files under `data/raw/NAME`, whole or not there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manymatch.datasets import check_settings, dataset
from manymatch.fetching.sources import downloads
from manymatch.system.files import remove, replacing


def download(name: str, settings: Mapping[str, Any], raw: Path) -> None:
    """Fill `raw` from the sources that `settings` (`sources.NAME` of params.yaml) name.

    Started again after an interruption, it goes on with the downloads that were cut off: they are
    kept beside `raw`, until it is complete.
    """
    source = dataset(name)
    checked = check_settings(name, settings)
    with replacing(raw) as partial:
        partial.mkdir()
        source.download(checked, partial)
    remove(downloads(raw, name))
