"""A folder with a few pictures and their caption table, to extract features from."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from manymatch.config.params import Extraction
from manymatch.datasets.base import CAPTIONS
from manymatch.features.extract import extract
from manymatch.util.parts import Parts


def picture(seed):
    """Smooth random blobs, so that the network sees something."""
    noise = np.random.default_rng(seed).integers(0, 255, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((60 + seed % 7, 48), Image.Resampling.BICUBIC)


def write_captions(path, files):
    rows = [
        {"image_id": i, "caption_id": f"{i}#{k}", "split": "train", "caption": "x", "file": file}
        | {"labels": []}
        for i, file in files.items()
        for k in range(2)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=CAPTIONS), path)


class Place:
    """A little dataset on disk."""

    def __init__(self, folder, count):
        self.folder, self.raw = folder, folder / "raw"
        self.captions, self.store = folder / "captions.parquet", folder / "out" / "lite0.h5"
        (self.raw / "images").mkdir(parents=True)
        self.files = {f"i{k}": f"images/i{k}.png" for k in range(count)}
        for k, file in enumerate(self.files.values()):
            picture(k).save(self.raw / file)
        write_captions(self.captions, self.files)

    def extract(self, backbone="lite0", batch_size=3, part=None, settings=None, **given):
        places, parts = (self.raw, self.captions, self.store), Parts(self.folder / "parts", part)
        given |= {"batch_size": batch_size, "device": "cpu"}
        settings = (settings or Extraction()).model_copy(update=given)
        extract(backbone, *places, settings, parts=parts)
