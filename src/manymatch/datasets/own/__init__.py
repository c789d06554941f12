"""Data sets of one's own: pictures with captions in one of the forms in which people hold them.

`sources.NAME` of params.yaml has `kind: own`; `manymatch init` writes it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets import base
from manymatch.datasets.image_files import IMAGES, ImageFolder
from manymatch.datasets.own.collect import collect
from manymatch.datasets.own.forms import OwnSettings
from manymatch.datasets.own.record import summary
from manymatch.util.files import write_text
from manymatch.util.parquet_file import metadata_of, read_table
from manymatch.util.progress import say
from manymatch.util.regular_file import resolved

TABLE = "captions.parquet"
CONTENT = "content.txt"
LEFT_OUT = "left_out.tsv"


class Own(base.Dataset):
    settings_model = OwnSettings

    def needs(self, name: str, settings: OwnSettings) -> Iterator[base.Need]:
        files = [("images", settings.images), ("captions", settings.captions)]
        for key, value in [*files, *(("split", str(path)) for path in settings.lists)]:
            where = f"params.yaml: sources.{name}.{key}"
            if value and (need := base.missing_file(where, value, "the path of your files")):
                yield need

    def download(self, settings: OwnSettings, raw: Path) -> None:
        """Write the caption table and the list of what was left out to `raw`.

        A folder of pictures is used in place. Pictures in tars and tables are copied.
        """
        collection = collect(settings, raw / IMAGES, raw / LEFT_OUT)
        for note in collection.notes:
            say(note)
        if collection.left_out:
            # The stage moves the folder to its final name.
            final = raw.with_name(raw.name.removesuffix(".partial"))
            say(summary(collection.left_out, final / LEFT_OUT))
        if collection.keeps_pictures:
            ImageFolder(folder=str(resolved(collection.form.folder))).write(raw)
        # The stages that read the pictures run again if a picture changes in its place.
        write_text(raw / CONTENT, collection.content())
        metadata = {base.NEAR_DUPLICATES: json.dumps(collection.near_duplicates)}
        metadata |= {base.CAPTION_PARSER: settings.parser} if settings.parser else {}
        base.write_rows(collection.rows(), raw / TABLE, base.CAPTIONS.with_metadata(metadata))

    def captions(self, raw: Path) -> Iterator[base.Caption]:
        """Yield the rows by split and file."""
        for batch in read_table(raw / TABLE, base.CAPTIONS).to_batches(base.ROWS):
            yield from (base.Caption(**row) for row in batch.to_pylist())

    def metadata(self, raw: Path) -> dict[bytes, bytes]:
        keys = (base.CAPTION_PARSER, base.NEAR_DUPLICATES)
        texts = {key: metadata_of(raw / TABLE, key, "download") for key in keys}
        return {key: text.encode() for key, text in texts.items() if text is not None}
