"""The plane of set elements: which sets are drawn, where they lie, and that it stays the same."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.samples import draw_queries
from manymatch.evaluation.sets.projection import plane, project
from manymatch.results.sets import PLANE_SIDE


def _vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_projection_has_the_places_of_whole_sets_and_is_the_same_again() -> None:
    images, texts = _vectors(40, 3, 6), _vectors(50, 2, 6, seed=1)
    projection = project(images, texts, None)
    assert np.shape(projection.images.places) == (40, 3, 2)
    assert np.shape(projection.texts.places) == (50, 2, 2)
    assert (projection.images.vectors, projection.texts.vectors) == (120, 100)
    assert projection == project(images, texts, 150)


def test_projection_of_many_vectors_is_of_a_random_part_of_the_sets() -> None:
    """The drawn vectors lie where they would if nothing else were there, in the drawn order."""
    images, texts = _vectors(40, 3, 6), _vectors(50, 2, 6, seed=1)
    projection = project(images, texts, 30)
    drawn = draw_queries(40, 50, 10)
    assert (projection.images.vectors, projection.texts.vectors) == (120, 100)
    alone = project(images[drawn.images], texts[drawn.captions], None)
    assert projection.images.places == alone.images.places
    assert projection.texts.places == alone.texts.places


def test_projection_keeps_what_is_near_together() -> None:
    """Two bundles of vectors: a point's nearest other point is of its own bundle."""
    bundle = torch.arange(60) % 2
    vectors = normalize(torch.eye(8)[bundle] + 0.05 * _vectors(60, 8), dim=1)
    places = torch.from_numpy(plane(vectors.numpy())).double()
    assert (places.amin(), places.amax()) == (0, PLANE_SIDE)
    distances = torch.cdist(places, places).fill_diagonal_(torch.inf)
    assert torch.equal(bundle[distances.argmin(1)], bundle)


def test_projection_of_one_point_many_times_and_of_very_few() -> None:
    assert (plane(np.ones((9, 4), np.float32)) == PLANE_SIDE // 2).all()
    assert plane(np.eye(2, dtype=np.float32)).shape == (2, 2)
    assert plane(np.eye(3, dtype=np.float32)).dtype == int
