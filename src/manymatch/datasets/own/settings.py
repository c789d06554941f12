"""The settings of a data set of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from manymatch.config.strict import Strict
from manymatch.datasets.own.forms import Format
from manymatch.datasets.own.table import Columns

_Text = Annotated[str, Field(min_length=1)]
"""An empty text would be taken for null."""


class OwnSettings(Strict):
    """`sources.NAME` of params.yaml for a data set of one's own, as `manymatch init` writes it."""

    kind: Literal["own"]
    images: _Text
    """A folder of pictures, tars or Parquet tables, or one such file. The name is UTF-8."""
    captions: _Text | None = None
    """The file or folder of the captions; null: they are in `images`."""
    format: Format | None = None
    """Null: recognised by looking."""
    file: _Text | None = None
    """The column of the pictures' files; null: those whose name says so."""
    text: tuple[_Text, ...] | None = None
    """The columns of captions; null: those whose name says so."""
    split: tuple[_Text, ...] = ()
    """The column of splits, or lists of files such as `train.txt`."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Draws the splits that are not given."""
    allow: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """The share of pictures, and of captions, that may be unusable."""
    content: str | None = None
    """A hash that `init` takes of the pictures and captions, so that DVC notices a change."""
    parser: _Text | None = None
    """spaCy's model of the captions' language; null: `scene_graphs.model`."""

    @property
    def lists(self) -> list[Path]:
        """The lists of files in `split`; a single name that is no file is a column."""
        lists = [Path(name) for name in self.split]
        return lists if len(lists) > 1 or any(path.is_file() for path in lists) else []

    @property
    def columns(self) -> Columns:
        """The columns that the user names."""
        column = None if self.lists or not self.split else self.split[0]
        return Columns(self.text, column, self.file)
