"""Where the files of MSR-VTT are: `sources.msrvtt` of params.yaml."""

from __future__ import annotations

from manymatch.config.strict import Strict
from manymatch.fetching.sources import Source


class MsrvttSettings(Strict):
    """One `folder` with files under their usual names, or each file's own source, or both (see
    `manymatch.fetching.gather` for which wins)."""

    folder: str | None = None
    captions: Source | None = None
    """`MSRVTT_data.json`, the 20 captions of every training video."""
    train: Source | None = None
    """A CSV file with the column `video_id`, such as `MSRVTT_train.csv`."""
    validation: Source | None = None
    """The same of those that validate."""
    test: Source | None = None
    """`MSRVTT_JSFUSION_test.csv`, with `video_id` and `sentence`."""
