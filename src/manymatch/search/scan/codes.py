"""Codes of a gallery in int8, which a scan reads instead of the embeddings.

Codes lie in blocks of `BLOCK` items: `codes.bin` has K planes `(b, D)` for each block, `errors.bin`
the numbers of the vectors, `(S, K, b)` float32: a scale, the bounds of `Quantiser.items`, and an
offset for some methods. `codes.json` has the sizes, `basis.npy` and `means.npy` what a `Quantiser`
has. The seal of an index covers its codes: `search.index.manifest.check_codes` compares the hashes.
"""

import math
import threading
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from manymatch.batch.parallel_map import map_parallel
from manymatch.config.strict import Strict
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.methods.shared.products import ProductQuery
from manymatch.model.answer import Side
from manymatch.model.model import Model
from manymatch.search.scan import dots
from manymatch.search.scan.exact import LARGEST, double
from manymatch.search.scan.quantiser import Quantiser, Query
from manymatch.util.errors import DataError, content_of
from manymatch.util.json_file import read_object
from manymatch.util.numpy_file import load_array

BLOCK = 8192
"""Items whose vectors and numbers lie together."""
ARRAYS = {"basis": 2, "means": 3}
"""The arrays of a quantiser, and their numbers of dimensions."""
_VECTORS = 32768
"""Vectors of a run, if a block does not have more: their products stay in the cache of a core, and
the threads seldom meet at Python's lock."""
_REMEDY = "Run 'manymatch index' again."
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


class Codes:
    """The codes of a gallery.

    Args:
        codes, numbers: as in `codes.bin` and `errors.bin`.
        name: of the codes in an error.

    Raises:
        DataError: the codes are damaged.
    """

    def __init__(
        self,
        sizes: Sizes,
        codes: NDArray[np.int8],
        numbers: NDArray[np.float32],
        quantiser: Quantiser,
        name: str | Path,
    ) -> None:
        self.sizes, self._codes, self._numbers = sizes, codes, numbers
        self.count, self.elements, self.longest = sizes.count, sizes.elements, sizes.longest
        self._quantiser = quantiser
        self._check_bounds(name)

    @classmethod
    def open(cls, folder: Path) -> "Codes":
        """The codes in a folder, mapped from the disk.

        Raises:
            DataError: the codes are missing or damaged.
        """
        path = folder / "codes.json"
        with content_of(path, "the sizes of codes", _REMEDY.removesuffix(".")):
            sizes = Sizes.model_validate(read_object(path))
        vectors = sizes.count * sizes.elements
        arrays = {
            name: checked_array(load_array(path), ndim, path)
            for name, ndim in ARRAYS.items()
            if (path := folder / f"{name}.npy").exists()
        }
        codes = _mapped(folder / "codes.bin", np.int8, vectors * sizes.size)
        numbers = _mapped(folder / "errors.bin", np.float32, vectors * sizes.numbers)
        return cls(sizes, codes, numbers, Quantiser(**arrays), folder / "errors.bin")

    def check(self, model: Model, gallery: Embeddings, count: int, side: Side) -> None:
        """Refuse codes that are not of `count` items such as the first one of `gallery`: a
        `DataError`."""
        sizes, expected = self.sizes, (model.preset.method, side, count)
        if (sizes.method, sizes.side, sizes.count) != expected:
            raise DataError(
                f"the codes are of {sizes.count} {sizes.side} and the method '{sizes.method}', not "
                f"of {count} {side} and '{model.preset.method}'. {_REMEDY}"
            )
        form = model.method.products(side)
        assert form is not None  # `write_codes` has refused this method
        first = double(gallery.rows(slice(0, 1)))
        vectors, quantiser = form.rows(first), self._quantiser
        elements, size = vectors.shape[1:]
        basis, means = quantiser.basis, quantiser.means
        numbers = self._bounds + (form.offsets is not None or first.mask is not None)
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

    def _check_bounds(self, name: str | Path) -> None:
        """Refuse numbers that bound nothing: only offsets may be negative or minus infinity."""
        for items in self.runs(1):
            _, numbers = self.run(items)
            own, added = numbers[: self._bounds], numbers[self._bounds :]
            if not bool((own.isfinite() & (own >= 0)).all()) or not bool((added < torch.inf).all()):
                raise DataError(f"{name}: a number is no bound. {_REMEDY}")

    def upper_bounds(self, queries: Sequence[ProductQuery]) -> NDArray[np.float32]:
        """Upper bounds `(q, n)` of the scores of all items, in one pass over the codes."""
        coded = [self._quantiser.query(query.vectors) for query in queries]
        # Bounds of the rounding errors of `reduce` in float32.
        slack = [
            2.0**-24 * (64 + self.elements * len(query.vectors)) * query.magnitude
            for query in queries
        ]
        bounds = torch.empty(len(queries), self.count)
        readers = threading.local()
        runs = self.runs(torch.get_num_threads())
        most = max(run.stop - run.start for run in runs) * self.elements

        def work(items: slice) -> None:
            if not hasattr(readers, "read"):
                readers.read = _Reader(self, coded, most)
            products, mask = readers.read(items)
            for row, own in enumerate(products):
                torch.add(queries[row].reduce(own, mask), slack[row], out=bounds[row, items])

        with dots.kernels(sum(len(query.codes) for query in coded)):
            map_parallel(work, runs)
        return bounds.numpy()

    def runs(self, threads: int) -> list[slice]:
        """All items in runs of whole blocks, one or more for each thread; the last block alone if
        it is not full."""
        full = self.count // BLOCK
        blocks_at_once = max(1, _VECTORS // (self.elements * BLOCK))
        parts = threads * math.ceil(full / (blocks_at_once * threads)) or 1
        edges = [full * part // parts * BLOCK for part in range(parts + 1)]
        return [slice(*run) for run in pairwise(dict.fromkeys([*edges, self.count]))]

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
        ends = list(accumulate((len(query.codes) for query in queries), initial=0))
        self._columns = [slice(*edges) for edges in pairwise(ends)]
        self._products = dots.Products(np.concatenate([query.codes for query in queries]), vectors)
        self._buffer = torch.empty(vectors * self._columns[-1].stop)

    def __call__(self, items: slice) -> tuple[list[Tensor], Tensor | None]:
        """For each query upper bounds `(K, L, b)` of the products of a run's b items with its L
        vectors, which the next call overwrites; and a mask `(K, b)` of the real elements (None: all
        are real)."""
        codes, numbers = self._codes.run(items)
        products = self._products(codes.reshape(-1, codes.shape[-1]))
        products = products.view(*codes.shape[:3], -1).permute(1, 3, 0, 2)
        planes = self._buffer[: products.numel()].view(products.shape).copy_(products)
        bounds = []
        for columns_of_query, query in zip(self._columns, self._queries, strict=True):
            own = planes[:, columns_of_query]
            errors = _weighted(numbers[1:], query.weights)[:, None]
            torch.addcmul(errors, own, numbers[0][:, None], value=query.scale, out=own)
            own = own.flatten(2)
            bounds.append(own if query.shifts is None else own.add_(query.shifts))
        added = len(self._queries[0].weights)  # the row of what is added to products, if any
        mask = numbers[added].isfinite().flatten(1) if len(numbers) > added else None
        return bounds, mask


def checked_array(array: NDArray[Any], ndim: int, where: str | Path) -> Tensor:
    """An array of a quantiser as a tensor; a `DataError` if the array is not finite float64 of
    `ndim` dimensions."""
    if array.dtype != np.float64 or array.ndim != ndim or not np.isfinite(array).all():
        raise DataError(
            f"{where}: {array.dtype} {array.shape}: expected {ndim} dimensions of finite float64. "
            f"{_REMEDY}"
        )
    return torch.from_numpy(array)


def _mapped(path: Path, dtype: type[np.generic], count: int) -> np.ndarray:
    """The `count` numbers of a file, mapped from the disk."""
    size = np.dtype(dtype).itemsize
    if not path.is_file() or path.stat().st_size != count * size:
        raise DataError(f"{path}: missing or damaged. {_REMEDY}")
    # Copy on write: torch takes arrays that may be written to, and nothing writes to this one. A
    # slice of a plain array is made faster than one of a memmap.
    return np.memmap(path, dtype, "c", shape=(count,)).view(np.ndarray)


def _weighted(errors: Tensor, weights: Sequence[float]) -> Tensor:
    """`(K, b)`: the sum of the `errors (S, K, b)`, each times its weight."""
    total = errors[0] * weights[0]
    for row in range(1, len(errors)):
        total.add_(errors[row], alpha=weights[row])
    return total
