"""Codes of a gallery in int8, which a scan reads instead of the embeddings.

Codes lie in blocks of `BLOCK` items: `codes.bin` has K planes `(b, D)` for each block, `errors.bin`
the numbers of the vectors, `(S, K, b)` float32: a scale, the bounds of `Quantiser.items`, and an
offset for some methods. `codes.json` has the sizes, `basis.npy` and `means.npy` what a `Quantiser`
has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import numpy as np
import torch
from pydantic import Field, ValidationError
from torch import Tensor

from manymatch.config.strict import Strict
from manymatch.methods.embeddings import Embeddings
from manymatch.model.answer import Side
from manymatch.model.model import Model
from manymatch.search.scan import dots
from manymatch.search.scan.forms import Form, Question, form_of
from manymatch.search.scan.quantiser import Quantiser, Query
from manymatch.search.scan.source import (
    BLOCK,
    LARGEST,
    Bounds,
    Source,
    check_items,
    columns,
    double,
    mask,
    offsets,
    stacked,
    weighted,
)
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.files import replacing
from manymatch.util.json_file import read_hashed_object, write_hashed_object
from manymatch.util.numpy_file import load_array

_ARRAYS = {"basis": 2, "means": 3}
"""The arrays of a quantiser, and their numbers of dimensions."""
_REMEDY = "Write the codes of the gallery again."
_Size = Annotated[int, Field(ge=1, le=2**40, strict=True)]


class Sizes(Strict):
    """What `codes.json` holds.

    Attributes:
        method, side: of the model and of the gallery, because another method reads other vectors.
        count, elements, size: n items with K vectors of D numbers.
        numbers: S, how many numbers each vector has in `errors.bin`.
        longest: a bound of the norms of the vectors.
    """

    method: str
    side: Side
    count: _Size
    elements: _Size
    size: _Size
    numbers: _Size
    longest: Annotated[float, Field(ge=0, le=LARGEST, strict=True)]


class Codes(Source):
    """The codes of a gallery in a folder, mapped from the disk.

    Raises:
        DataError: the codes are missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.sizes = sizes = _sizes(folder / "codes.json")
        self.count, self.elements, self.longest = sizes.count, sizes.elements, sizes.longest
        vectors = sizes.count * sizes.elements
        self._codes = _mapped(folder / "codes.bin", np.int8, vectors * sizes.size)
        self._numbers = _mapped(folder / "errors.bin", np.float32, vectors * sizes.numbers)
        self._quantiser = Quantiser(
            **{
                name: _array(path, ndim)
                for name, ndim in _ARRAYS.items()
                if (path := folder / f"{name}.npy").exists()
            }
        )
        self._check_bounds(folder / "errors.bin")

    @staticmethod
    def write(folder: Path, model: Model, blocks: Iterable[Embeddings], side: Side) -> None:
        """Write the codes of a gallery to `folder`, in bounded memory.

        Args:
            blocks: the gallery, one run of items after another.
            side: whether the items are images or texts.

        Raises:
            DataError: there are no items, an item is not finite, or the sets of two runs have
                different numbers of elements.
            ConfigError: the scores of the model's method have no codes.
        """
        form, method = form_of(model.method, side), model.preset.method
        if form is None:
            raise ConfigError(f"the scores of method '{method}' have no codes. Search without.")
        with replacing(folder) as partial, ExitStack() as stack:
            partial.mkdir()
            codes, errors = (
                stack.enter_context((partial / name).open("wb"))
                for name in ("codes.bin", "errors.bin")
            )
            writer = _Writer(form, codes, errors)
            for items in _runs(blocks, BLOCK):
                writer.add(items)
            sizes = writer.sizes(method, side)
            write_hashed_object(partial / "codes.json", sizes.model_dump())
            for name in _ARRAYS:
                if (array := getattr(writer.quantiser, name)) is not None:
                    np.save(partial / f"{name}.npy", array.numpy())

    def check(self, model: Model, gallery: Embeddings, side: Side) -> None:
        """Refuse codes of another gallery, which are a `DataError`."""
        sizes, expected = self.sizes, (model.preset.method, side, len(gallery))
        if (sizes.method, sizes.side, sizes.count) != expected:
            raise DataError(
                f"the codes are of {sizes.count} {sizes.side} and the method '{sizes.method}', not "
                f"of {len(gallery)} {side} and '{model.preset.method}'. {_REMEDY}"
            )
        form = form_of(model.method, side)
        assert form is not None  # `write` has refused this method
        first = double(gallery.rows(slice(0, 1)))
        vectors, quantiser = form.rows(first), self._quantiser
        elements, size = vectors.shape[1:]
        basis, means = quantiser.basis, quantiser.means
        numbers = self._bounds + (offsets(form, first) is not None)
        fits = (
            (sizes.elements, sizes.numbers) == (elements, numbers)
            and (basis is None or tuple(basis.shape) == (size, sizes.size))
            and (basis is not None or sizes.size == size)
            and (means is None or tuple(means.shape) == (elements, 1, size))
        )
        if not fits:
            raise DataError(f"the codes are not of {elements} vectors of {size} numbers. {_REMEDY}")

    @property
    def _bounds(self) -> int:
        """The number of numbers of a vector without an offset."""
        return 3 if self._quantiser.basis is None else 4

    def _check_bounds(self, path: Path) -> None:
        """Refuse numbers that bound nothing: only offsets may be negative or minus infinity."""
        for items in self.runs(1):
            _, numbers = self.run(items)
            own, added = numbers[: self._bounds], numbers[self._bounds :]
            if not bool((own.isfinite() & (own >= 0)).all()) or not bool((added < torch.inf).all()):
                raise DataError(f"{path}: a number is no bound. {_REMEDY}")

    @contextmanager
    def reader(self, questions: Sequence[Question]) -> Iterator[Callable[[], Bounds]]:
        queries = [self._quantiser.query(question.vectors) for question in questions]
        with dots.kernels(sum(len(query.codes) for query in queries)):
            most = max(run.stop - run.start for run in self.runs(1)) * self.elements
            yield lambda: _Reader(self, queries, most)

    def run(self, items: slice) -> tuple[np.ndarray, Tensor]:
        """The codes `(B, K, b, D)` and the numbers `(S, K, B, b)` of B blocks of b items."""
        sizes = self.sizes
        block = min(BLOCK, items.stop - items.start)
        start, stop = items.start * sizes.elements, items.stop * sizes.elements
        codes = self._codes[start * sizes.size : stop * sizes.size]
        numbers = torch.from_numpy(self._numbers[start * sizes.numbers : stop * sizes.numbers])
        rearranged = numbers.view(-1, sizes.numbers, sizes.elements, block)
        return codes.reshape(-1, sizes.elements, block, sizes.size), rearranged.permute(1, 2, 0, 3)


class _Reader:
    """Upper bounds of products, run by run, in the memory of one thread."""

    def __init__(self, codes: Codes, queries: Sequence[Query], vectors: int) -> None:
        self._codes, self._queries = codes, queries
        self._columns = columns([query.codes for query in queries])
        self._products = dots.Products(np.concatenate([query.codes for query in queries]), vectors)
        self._buffer = torch.empty(vectors * self._columns[-1].stop)

    def __call__(self, items: slice) -> tuple[list[Tensor], Tensor | None]:
        codes, numbers = self._codes.run(items)
        products = self._products(codes.reshape(-1, codes.shape[-1]))
        products = products.view(*codes.shape[:3], -1).permute(1, 3, 0, 2)
        planes = self._buffer[: products.numel()].view(products.shape).copy_(products)
        bounds = []
        for columns_of_query, query in zip(self._columns, self._queries, strict=True):
            own = planes[:, columns_of_query]
            errors = weighted(numbers[1:], query.weights)[:, None]
            torch.addcmul(errors, own, numbers[0][:, None], value=query.scale, out=own)
            own = own.flatten(2)
            bounds.append(own if query.shifts is None else own.add_(query.shifts))
        return bounds, mask(numbers, len(self._queries[0].weights))


class _Writer:
    """Appends the codes of blocks to two files."""

    def __init__(self, form: Form, codes: BinaryIO, numbers: BinaryIO) -> None:
        self._form, self._codes, self._numbers = form, codes, numbers
        self._count, self._shape, self._longest = 0, (0, 0, 0), 0.0
        self.quantiser = Quantiser()

    def add(self, items: Embeddings) -> None:
        check_items(items, self._count)
        exact = double(items)
        vectors = self._form.rows(exact).transpose(0, 1)
        if not self._count:
            self.quantiser = Quantiser.fit(vectors)
        codes, scales, bounds = self.quantiser.items(vectors)
        numbers = stacked([scales, *bounds], offsets(self._form, exact))
        shape = len(vectors), codes.shape[2], len(numbers)
        if self._count and shape != self._shape:
            raise DataError(
                f"items {self._count} to {self._count + len(items) - 1}: sets of {len(vectors)} "
                f"elements, but earlier ones have {self._shape[0]}. Pad all sets to one size."
            )
        self._codes.write(codes.contiguous().numpy().data)
        self._numbers.write(numbers.contiguous().numpy().data)
        self._longest = max(self._longest, float(vectors.norm(dim=2).max()))
        self._count, self._shape = self._count + len(items), shape

    def sizes(self, method: str, side: Side) -> Sizes:
        if not self._count:
            raise DataError("there are no items to search")
        values = method, side, self._count, *self._shape, self._longest
        return Sizes.model_validate(dict(zip(Sizes.model_fields, values, strict=True)))


def _sizes(path: Path) -> Sizes:
    try:
        return Sizes.model_validate(read_hashed_object(path, _REMEDY))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        key = ".".join(map(str, fault["loc"]))
        raise DataError(f"{path}: {key}: {fault['msg']}. {_REMEDY}") from None


def _array(path: Path, ndim: int) -> Tensor:
    """The finite array in float64."""
    array = load_array(path)
    if array.dtype != np.float64 or array.ndim != ndim or not np.isfinite(array).all():
        raise DataError(
            f"{path}: {array.dtype} {array.shape}: expected {ndim} dimensions of finite float64. "
            f"{_REMEDY}"
        )
    return torch.from_numpy(array)


def _runs(parts: Iterable[Embeddings], size: int) -> Iterator[Embeddings]:
    """The same items in runs of `size`; the last run may be shorter."""
    pending: list[Embeddings] = []
    for part in parts:
        pending.append(part.scored())
        while sum(map(len, pending)) >= size:
            joined = Embeddings.join(pending)
            yield joined.rows(slice(0, size))
            pending = [joined.rows(slice(size, len(joined)))] if len(joined) > size else []
    if pending:
        yield Embeddings.join(pending)


def _mapped(path: Path, dtype: type[np.generic], count: int) -> np.ndarray:
    """The `count` numbers of a file, mapped from the disk."""
    size = np.dtype(dtype).itemsize
    if not path.is_file() or path.stat().st_size != count * size:
        raise DataError(f"{path}: missing or damaged. {_REMEDY}")
    # Copy on write: torch takes arrays that may be written to, and nothing writes to this one. A
    # slice of a plain array is made faster than one of a memmap.
    return np.memmap(path, dtype, "c", shape=(count,)).view(np.ndarray)
