"""The stage `download`: put a data set's files under `data/raw/NAME`, all of them or none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manymatch.datasets import check_settings, dataset, kind
from manymatch.datasets.fetching.sources import downloads
from manymatch.util.files import remove, replacing


def download(name: str, settings: Mapping[str, Any], raw: Path) -> None:
    """Fill `raw` from the sources in `settings`, the group `sources.NAME` of params.yaml.

    Unfinished downloads are kept beside `raw` until `raw` is complete, so that a run after an
    interruption resumes them.
    """
    checked = check_settings(name, settings)
    source = dataset(kind(name, settings))
    for need in source.needs(name, checked):  # before a long download
        if need.fault:
            raise need.fault
    with replacing(raw) as partial:
        partial.mkdir()
        source.download(checked, partial)
    remove(downloads(raw, name))
