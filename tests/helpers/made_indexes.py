"""Indexes by small models."""

from functools import cache

import manymatch
from manymatch import Index
from manymatch.search.index.build import build
from manymatch.search.index.sources import source_of
from manymatch.util.parts import Parts

_LOADED = cache(manymatch.load)


def made_index(source, model_folder, target, table=None, **options):
    """The index of `source` in the new folder `target`, by the model in `model_folder`."""
    model = _LOADED(model_folder, "cpu")
    parts = Parts(target.with_suffix(".parts"))
    build(source_of(source), model, target, str(model_folder), table, parts=parts, **options)
    return Index.open(options.get("url") or target, model)
