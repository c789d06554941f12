"""Elements of sets: selections, the papers' formulas of variance and pairs, what single elements
retrieve, and the plane that they are drawn in."""

import math
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from made_scores import naive_nearest
from torch.nn.functional import normalize

from manymatch.config.params import Elements
from manymatch.config.strict import validate
from manymatch.evaluation.samples import draw_queries
from manymatch.evaluation.sets.analysis import (
    circular_variance,
    element_pairs,
    log_circular_variance,
    meanings,
    plane,
    project,
    winners,
)
from manymatch.evaluation.sets.sampled_sets import matching_elements, nearest_items
from manymatch.model import scores as blocks
from manymatch.results.sets import PLANE_SIDE
from manymatch.util.errors import ConfigError


def _vectors(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_selections_of_elements_are_checked():
    assert validate(Elements, {"images": [[1, 3, 4]]}, "params.yaml").images == ((1, 3, 4),)
    for faulty in ([[0]], [[]], [1]):
        with pytest.raises(ConfigError, match=r"params.yaml: texts"):
            validate(Elements, {"texts": faulty}, "params.yaml")


@pytest.mark.parametrize("pairs_at_once", [1, 100])
def test_element_pairs_by_hand(monkeypatch, pairs_at_once):
    """One image with two captions: the first likes image element 1, the second element 2."""
    images = torch.tensor([[[2.0, 0.0], [0.0, 1.0]]])
    texts = torch.tensor([[[3.0, 0.0], [3.0, 4.0]], [[0.0, 5.0], [0.0, -1.0]]])
    monkeypatch.setattr("manymatch.evaluation.sets.analysis._PAIRS_AT_ONCE", pairs_at_once)
    pairs = element_pairs(images, texts, torch.tensor([0, 0]))
    # cosines: caption 1 [[1, .6], [0, .8]], caption 2 [[0, 0], [1, -1]]
    torch.testing.assert_close(pairs.share, torch.tensor([[0.5, 0.0], [0.5, 0.0]]).double())
    torch.testing.assert_close(pairs.cosine, torch.tensor([[0.5, 0.3], [0.5, -0.1]]).double())
    assert winners(pairs.share.sum(1)) == pytest.approx(2.0)
    assert winners(pairs.share.sum(0)) == pytest.approx(1.0)


def _speaking(*captions):
    graphs = [SimpleNamespace(graph=SimpleNamespace(names=names)) for names in captions]
    return SimpleNamespace(captions=graphs)


def test_meanings_equal_a_loop_over_all_permutations():
    rng = np.random.default_rng(0)
    said = [
        [rng.choice(list("abcde"), 2).tolist() for _ in range(captions)] for captions in (4, 3, 1)
    ]
    won = [rng.integers(2, size=len(captions)).tolist() for captions in said]

    def counts(orders):
        """How many pairs of captions have a common object, how many of these share an element, how
        many have no common object, and how many of those have different elements."""
        table = np.zeros(4)
        for names, elements, order in zip(said, won, orders, strict=True):
            for i, j in combinations(range(len(names)), 2):
                common = bool({*names[order[i]]} & {*names[order[j]]})
                same = elements[i] == elements[j]
                table += [common, common and same, not common, not common and not same]
        return table

    actual = counts([range(len(names)) for names in said])
    shuffled = np.zeros(4)
    orders = [list(permutations(range(len(names)))) for names in said]
    for first in orders[0]:
        shuffled += np.mean([counts([first, second, [0]]) for second in orders[1]], 0)
    shuffled /= len(orders[0])
    result = meanings(
        [_speaking(*names) for names in said], torch.tensor([*won[0], *won[1], *won[2]])
    )
    assert result.to_json() == pytest.approx(
        {
            "together": 100 * actual[1] / actual[0],
            "together_by_chance": 100 * shuffled[1] / shuffled[0],
            "apart": 100 * actual[3] / actual[2],
            "apart_by_chance": 100 * shuffled[3] / shuffled[2],
        }
    )
    assert result.together != pytest.approx(result.together_by_chance)
    # Captions that all speak of one object say nothing.
    assert meanings([_speaking("a", "ab", "ac")], torch.tensor([0, 1, 1])) is None


def _naive_variance(vectors, power=1):
    values = []
    for elements in vectors.tolist():
        mean = [0.0] * len(elements[0])
        for element in elements:
            length = math.sqrt(sum(x * x for x in element))
            mean = [m + x / length / len(elements) for m, x in zip(mean, element, strict=True)]
        values.append(1 - math.sqrt(sum(m * m for m in mean)) ** power)
    return values


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("elements", [1, 3])
def test_circular_variance_is_the_formula(elements, squared):
    """1 - ||mean|| of DivE, 1 - ||mean||^2 of MaxMatch."""
    vectors = 3 * _vectors(5, elements, 7)
    expected = torch.tensor(_naive_variance(vectors, 1 + squared), dtype=torch.float64)
    variances = circular_variance(vectors, squared=squared)
    torch.testing.assert_close(variances, expected, atol=1e-9, rtol=0)
    variance = log_circular_variance(vectors, squared=squared)
    if elements > 1:
        assert variance == pytest.approx(math.log(expected.mean().item()), abs=1e-9)
    else:
        assert variances.max() < 1e-12 and -40 < variance < -20  # a number, for JSON


@pytest.mark.parametrize(("k", "l", "items"), [(3, 2, 9), (1, 4, 9), (3, 2, 2)])
@pytest.mark.parametrize("blocks_of", [2, 1000])
def test_nearest_items_of_each_element_are_those_of_a_loop(monkeypatch, k, l, items, blocks_of):  # noqa: E741
    monkeypatch.setattr(blocks, "CAPTIONS_PER_BLOCK", blocks_of)
    monkeypatch.setattr(blocks, "SCORES_AT_ONCE", 10 * blocks_of)
    queries, gallery = 2 * _vectors(5, k, 6), 3 * _vectors(items, l, 6, seed=1)
    nearest = nearest_items(queries, gallery)
    expected = naive_nearest(queries, gallery, 3)
    assert nearest.items.tolist() == [[[i for _, i, _ in of] for of in item] for item in expected]
    torch.testing.assert_close(nearest.cosines, torch.tensor(expected, dtype=torch.float64)[..., 0])
    met = matching_elements(queries, gallery, nearest.items)
    assert met.tolist() == [[[e for *_, e in of] for of in item] for item in expected]
    firsts = [len({of[0][1] for of in item}) for item in expected]
    assert nearest.distinct == pytest.approx(sum(firsts) / len(firsts))


def test_projection_is_of_all_sets_or_of_a_random_part():
    """The drawn vectors lie where they would if nothing else were there, in the drawn order."""
    images, texts = _vectors(40, 3, 6).float(), _vectors(50, 2, 6, seed=1).float()
    projection = project(images, texts, None)
    assert np.shape(projection.images.places) == (40, 3, 2)
    assert np.shape(projection.texts.places) == (50, 2, 2)
    assert projection == project(images, texts, 150)
    projection = project(images, texts, 30)
    drawn = draw_queries(40, 50, 10)
    assert (projection.images.vectors, projection.texts.vectors) == (120, 100)
    alone = project(images[drawn.images], texts[drawn.captions], None)
    assert projection.images.places == alone.images.places
    assert projection.texts.places == alone.texts.places


def test_projection_keeps_what_is_near_together():
    """Two bundles of vectors: a point's nearest other point is of its own bundle."""
    bundle = torch.arange(60) % 2
    vectors = normalize(torch.eye(8)[bundle] + 0.05 * _vectors(60, 8).float(), dim=1)
    places = torch.from_numpy(plane(vectors.numpy())).double()
    assert (places.amin(), places.amax()) == (0, PLANE_SIDE)
    distances = torch.cdist(places, places).fill_diagonal_(torch.inf)
    assert torch.equal(bundle[distances.argmin(1)], bundle)
    assert (plane(np.ones((9, 4), np.float32)) == PLANE_SIDE // 2).all()
    assert plane(np.eye(2, dtype=np.float32)).shape == (2, 2)
    assert plane(np.eye(3, dtype=np.float32)).dtype == int
