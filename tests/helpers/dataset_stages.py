"""The stages `download` and `captions`, as the tests of the datasets run them."""

import pyarrow.parquet as pq
import pytest

from manymatch.datasets import dataset
from manymatch.datasets.captions import write_captions
from manymatch.datasets.download import download
from manymatch.util.errors import ManyMatchError


class Stages:
    """The stages `download` and `captions` of one dataset, into a folder of their own."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.raw = folder / "raw" / name

    def __call__(self, settings):
        """The rows of the caption table; `pairs` are those judged true, `false_pairs` those judged
        false. Nothing that the settings do not name comes from the web."""
        fields = dataset(self.name).settings_model.model_fields
        offline = {name: None for name, field in fields.items() if "https:" in repr(field.default)}
        download(self.name, offline | settings, self.raw)
        outputs = [self.folder / name for name in ("table", "words", "pairs")]
        write_captions(self.name, self.raw, *outputs, minimum_count=1)
        pairs = pq.read_table(outputs[2]).to_pylist()
        self.pairs, self.false_pairs = (
            [(p["image_id"], p["caption_id"]) for p in pairs if p.get("relevant", True) == true]
            for true in (True, False)
        )
        return pq.read_table(outputs[0]).to_pylist()

    def refused(self, settings, kind, words):
        """The one line with `words` in which the stages end."""
        with pytest.raises(ManyMatchError) as caught:
            self(settings)
        line = str(caught.value)
        assert isinstance(caught.value, kind) and words in line and "\n" not in line
        return line


def split_of(rows):
    """Image id -> split, in the table's order."""
    return {row["image_id"]: row["split"] for row in rows}
