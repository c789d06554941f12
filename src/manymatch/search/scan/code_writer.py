"""Writes the codes of a gallery, which `Codes` reads, in bounded memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manymatch.methods.shared.embeddings import Embeddings
from manymatch.methods.shared.products import ROUNDED, ProductForm
from manymatch.model.answer import Side
from manymatch.model.model import Model
from manymatch.search.scan.codes import ARRAYS, BLOCK, Sizes
from manymatch.search.scan.exact import ExactScores, check_items, double, single
from manymatch.search.scan.quantiser import Quantiser
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.files import replacing, write_json

_SAMPLE = 16
"""Items, each also as a query, on which the form of the score is checked."""
_TOLERANCE = 1e-5


class Coder:
    """Makes the codes of a gallery, one run of items after another.

    Args:
        side: whether the items are images or texts.
        quantiser: of earlier items of the gallery; None: the first run decides.

    Attributes:
        count, longest: the number of coded items, and the norm of the longest vector.
        shape: K, P and S: vectors of an item, numbers of a code, numbers beside a code.

    Raises:
        ConfigError: the scores of the model's method have no codes.
    """

    def __init__(self, model: Model, side: Side, quantiser: Quantiser | None = None) -> None:
        form, method = model.method.products(side), model.preset.method
        if form is None:
            raise ConfigError(
                f"the scores of method '{method}' have no codes. Search without codes."
            )
        self._model, self._side, self._form, self.quantiser = model, side, form, quantiser
        self.count, self.longest, self.shape = 0, 0.0, (0, 0, 0)

    def __call__(self, items: Embeddings) -> tuple[Tensor, Tensor]:
        """The codes `(K, b, P)` int8 and the numbers `(S, K, b)` float32 of b items.

        Raises:
            DataError: an item is not finite, or the sets have another number of elements than those
                of an earlier run.
            ConfigError: the form is not that of the method's score.
        """
        check_items(items, self.count)
        exact = double(items)
        vectors, added = self._form.rows(exact).transpose(0, 1), _offsets(self._form, exact)
        if not self.count:
            _check_form(self._model, self._form, items, self._side)
        self.quantiser = self.quantiser or Quantiser.fit(vectors)
        codes, scales, bounds = self.quantiser.items(vectors)
        numbers = torch.stack([scales, *bounds, *([] if added is None else [added])])
        shape = (len(vectors), codes.shape[2], len(numbers))
        if self.count and shape != self.shape:
            raise DataError(
                f"items {self.count} to {self.count + len(items) - 1}: sets of {len(vectors)} "
                f"elements, but earlier ones have {self.shape[0]}. Pad all sets to one size."
            )
        self.longest = max(self.longest, float(vectors.norm(dim=2).max()))
        self.count, self.shape = self.count + len(items), shape
        return codes.contiguous(), numbers.float().contiguous()


def write_codes(folder: Path, model: Model, blocks: Iterable[Embeddings], side: Side) -> None:
    """Write the codes of the `blocks` of a gallery to `folder`. The codes of an index are in the
    index's seal.

    Raises:
        DataError: there are no items; or as for a `Coder`.
        ConfigError: as for a `Coder`.
    """
    coder = Coder(model, side)
    with replacing(folder) as partial:
        partial.mkdir()
        with (partial / "codes.bin").open("wb") as file, (partial / "errors.bin").open("wb") as own:
            for items in _runs(blocks, BLOCK):
                codes, numbers = coder(items)
                file.write(codes.numpy().data)
                own.write(numbers.numpy().data)
        if coder.quantiser is None:
            raise DataError("there are no items to search")
        values = model.preset.method, side, coder.count, *coder.shape, coder.longest
        sizes = Sizes.model_validate(dict(zip(Sizes.model_fields, values, strict=True)))
        write_json(partial / "codes.json", sizes.model_dump())
        for name in ARRAYS:
            if (array := getattr(coder.quantiser, name)) is not None:
                np.save(partial / f"{name}.npy", array.numpy())


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


def _offsets(form: ProductForm, items: Embeddings) -> Tensor | None:
    """`(K, b)` upper bounds of what the form adds to products, minus infinity for elements that are
    not real. None: nothing is added, and the sets have no mask."""
    if form.offsets is None and items.mask is None:
        return None
    exact = items.vectors.new_zeros(()) if form.offsets is None else form.offsets(items)
    bounds = exact + ROUNDED * exact.abs()
    return bounds.T if items.mask is None else bounds.where(items.mask, -torch.inf).T


@torch.inference_mode()
def _check_form(model: Model, form: ProductForm, items: Embeddings, side: Side) -> None:
    """Refuse a form that is not that of the method's score, on a sample of the items: with bounds
    below scores, a search would miss items."""
    sample = items.rows(slice(0, min(len(items), _SAMPLE)))
    exact, scores = double(sample), ExactScores(model, sample, side)
    vectors, added = form.rows(exact), _offsets(form, exact)
    for query in single(sample):
        asked = form.ask(query, float(vectors.norm(dim=2).max()))
        products = (vectors @ asked.vectors.T).permute(1, 2, 0)
        products = products if added is None else products + added[:, None]
        mask = None if added is None else added.isfinite()
        bounds = asked.reduce(products.float(), mask) + _TOLERANCE * (1 + asked.magnitude)
        if not bool((torch.from_numpy(scores(query, np.arange(len(sample)))[1]) <= bounds).all()):
            raise ConfigError(
                f"method '{model.preset.method}': `products` is not the form of `score`. Override "
                "`products` in the class of the method."
            )
