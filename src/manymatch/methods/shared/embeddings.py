"""What encoders give: the embeddings that losses, scores and evaluation take.

`Embeddings` is the one class that knows how parts are sliced, joined, moved and converted. A method
with a part of its own declares a subclass in its own file; no other file changes:

    @dataclass(frozen=True)
    class BoxEmbeddings(Embeddings):
        areas: Tensor | None = None  # (n,): a part with one row for each sample
        words: Tensor | None = field(default=None, metadata=flat("word_caption"))  # (W, D)
        word_caption: Tensor | None = field(default=None, metadata=flat("word_caption"))  # (W,)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import accumulate
from typing import Any, Self, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from manymatch.util.errors import DataError

AnyEmbeddings = TypeVar("AnyEmbeddings", bound="Embeddings")


PER_ELEMENT = {"per_element": True}
"""Metadata of a part whose second dimension numbers the elements of a set."""
UNSCORED = {"scored": False}
"""Metadata of a part that no score reads."""
NO_PART = {"part": False}
"""Metadata of a field that holds no tensor."""


def flat(index: str) -> dict[str, str]:
    """Metadata of a part that has any number of rows for each sample.

    The part `index` holds the sample of each row, ascending; it is itself flat by this name.
    """
    return {"index": index}


@dataclass(frozen=True)
class Embeddings:
    """The embeddings of n images or n captions. A part that a method does not have is None.

    Args:
        vectors: `(n, K, D)`; the method L2-normalises the vectors if the score expects unit
            vectors.
        log_variance: `(n, D)`, of diagonal Gaussians.
        candidate: `(n, D)`, L2-normalised, what a sample is as an answer where this differs from
            what the sample is as a query (MSRM).
        globals: `(n, D)` global features.
        slots: `(n, K, D)`, what sets the elements of a set apart, for diversity losses.
        attention: `(n, K, R)`, how much each element looks at each region or word. It is given
            in evaluation mode only.
        entities: `(V, D)`, the entities of all captions, one caption after another (CORA).
        entity_caption: `(V,)` row of the caption of each entity, ascending.
        entity_names: `(V,)`, `shards.batch.name_id` of the entity's lemmatised name.
        entity_attributes: `(V, A)`, `name_id` of the entity's attributes, 0 where there is none.
        mask: `(n, K)` bool, True for the real elements of sets of unequal size; None if all
            elements are real. Scores read the mask; the losses of set methods refuse padded sets.
        origin: the side, "images" or "texts", and the model that made the embeddings, where a
            trained model in use made them (`search.model`). This is no part.
    """

    vectors: Tensor = field(metadata=PER_ELEMENT)
    log_variance: Tensor | None = None
    candidate: Tensor | None = None
    globals: Tensor | None = field(default=None, metadata=UNSCORED)
    slots: Tensor | None = field(default=None, metadata=PER_ELEMENT | UNSCORED)
    attention: Tensor | None = field(default=None, metadata=PER_ELEMENT | UNSCORED)
    entities: Tensor | None = field(default=None, metadata=flat("entity_caption"))
    entity_caption: Tensor | None = field(default=None, metadata=flat("entity_caption"))
    entity_names: Tensor | None = field(default=None, metadata=flat("entity_caption"))
    entity_attributes: Tensor | None = field(default=None, metadata=flat("entity_caption"))
    mask: Tensor | None = field(default=None, metadata=PER_ELEMENT)
    origin: Any = field(default=None, metadata=NO_PART)  # a pair of texts, or None

    def __len__(self) -> int:
        return self.vectors.shape[0]

    def parts(self) -> dict[str, Tensor]:
        """The parts that are not None, by name; `vectors` is the first."""
        kind: Any = type(self)  # mypy takes the hash of the embeddings for that of their class
        pairs = ((name, getattr(self, name)) for name in _part_names(kind))
        return {name: value for name, value in pairs if value is not None}

    def part(self, name: str) -> Tensor:
        """The part `name`.

        Raises:
            DataError: the embeddings do not have the part, as those of arrays from elsewhere.
        """
        part: Tensor | None = getattr(self, name)
        if part is None:
            raise DataError(f"embeddings without a {name}, which the score of the model reads")
        return part

    def index_parts(self) -> dict[str, Tensor]:
        """The parts that hold the sample of each row of flat parts, by name."""
        return {
            name: value
            for name, value in self.parts().items()
            if self._declared(name).get("index") == name
        }

    def scored_parts(self) -> dict[str, Tensor]:
        """The parts with one row for each sample that a score may read, by name."""
        return {
            name: value
            for name, value in self.parts().items()
            if self._declared(name).get("scored", True) and "index" not in self._declared(name)
        }

    def scored(self) -> Self:
        """The embeddings without the parts that no score reads."""
        unread: dict[str, Any] = {
            name: None for name in self.parts() if not self._declared(name).get("scored", True)
        }
        return replace(self, **unread)

    def to_items(self) -> Self:
        """Queries as they are compared with items of their own side: what a sample is as an answer
        takes the place of what the sample is as a query."""
        if self.candidate is None:
            return self
        return replace(self, vectors=self.candidate[:, None])

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The embeddings with `change(part)` in place of every part."""
        return replace(self, **{name: change(value) for name, value in self.parts().items()})

    def to(self, device: torch.device | str) -> Self:
        return self.map(lambda value: value.to(device))

    def float(self) -> Self:
        """Every floating-point part in float32: autocast leaves half precision, which is too
        coarse for losses and for ranks."""
        return self.map(lambda value: value.float() if value.is_floating_point() else value)

    def rows(self, selected: slice) -> Self:
        """The samples `selected`, which names its start and stop, without copying."""
        runs: dict[str | None, slice] = {None: selected}
        for name, index in self.index_parts().items():
            ends = torch.searchsorted(index, index.new_tensor([selected.start, selected.stop]))
            runs[name] = slice(*ends.tolist())
        cut = {
            name: value[runs[self._declared(name).get("index")]]
            for name, value in self.parts().items()
        }
        shifted = {name: cut[name] - selected.start for name in self.index_parts()}
        return replace(self, **cut | shifted)

    def elements(self, selected: Sequence[int]) -> Self:
        """Sets that have the elements `selected` alone (0-based)."""
        rows = list(selected)
        return replace(
            self,
            **{
                name: value[:, rows]
                for name, value in self.parts().items()
                if "per_element" in self._declared(name)
            },
        )

    @staticmethod
    def join(blocks: Sequence[AnyEmbeddings]) -> AnyEmbeddings:
        """The samples of all `blocks` one after another, in float32.

        Sets of unequal size, and attention over unequally many inputs, are padded with zeros to
        the largest.
        """
        columns = {name: [block.parts()[name] for block in blocks] for name in blocks[0].parts()}
        starts = list(accumulate(map(len, blocks[:-1]), initial=0))
        for name in blocks[0].index_parts():
            columns[name] = [i + start for i, start in zip(columns[name], starts, strict=True)]
        joined = {name: _padded(values) for name, values in columns.items()}
        return replace(blocks[0], **joined).float()

    def _declared(self, name: str) -> Mapping[str, Any]:
        """The metadata of the part `name`."""
        return self.__dataclass_fields__[name].metadata


@cache  # a training step asks several times
def _part_names(kind: type[Embeddings]) -> tuple[str, ...]:
    return tuple(part.name for part in fields(kind) if part.metadata.get("part", True))


def _padded(values: Sequence[Tensor]) -> Tensor:
    """All rows; every other dimension has the largest size, with zeros behind smaller ones."""
    widest = [max(sizes) for sizes in zip(*(value.shape[1:] for value in values), strict=True)]

    def widened(value: Tensor) -> Tensor:
        missing = [size - own for size, own in zip(widest, value.shape[1:], strict=True)]
        zeros = [count for size in reversed(missing) for count in (0, size)]
        return pad(value, zeros) if any(missing) else value

    return torch.cat([widened(value) for value in values])
