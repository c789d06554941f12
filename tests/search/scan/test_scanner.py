"""A scan gives the best items of the whole gallery, in a defined order."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_galleries import (
    KINDS,
    SCORES,
    SETS,
    TOLERANCE,
    add_entities,
    all_scores,
    compare,
    made_up,
)
from torch.nn.functional import normalize

from manymatch.methods.shared.embeddings import Embeddings
from manymatch.search.scan import dots
from manymatch.search.scan.code_writer import write_codes
from manymatch.search.scan.codes import BLOCK, Codes
from manymatch.search.scan.exact import double
from manymatch.search.scan.quantiser import Quantiser
from manymatch.search.scan.scanner import Scanner
from manymatch.util.errors import ConfigError, DataError

EXAMPLES = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def codes_of(model, gallery, side="images", blocks=1):
    """The codes of a gallery that comes in some blocks."""
    with TemporaryDirectory() as folder:
        size = -(-len(gallery) // blocks)
        starts = range(0, len(gallery), size)
        runs = (gallery.rows(slice(at, min(at + size, len(gallery)))) for at in starts)
        write_codes(Path(folder) / "codes", model, runs, side)
        return Codes.open(Path(folder) / "codes")


@pytest.mark.parametrize("score", [*SCORES, "cora beta"])
@settings(EXAMPLES, max_examples=4)
@given(data=st.data())
def test_a_scan_equals_brute_force(small_model, score, data):
    model, draw = small_model(score.removesuffix(" beta")), data.draw
    n, seed = draw(st.integers(1, 150)), draw(st.integers(0, 2**31))
    elements = draw(st.sampled_from([1, 2, 4])) if score in SETS else 1
    of_query = draw(st.sampled_from([elements, 3])) if score in SETS else 1
    size = 16 if score == "pcme samples" else draw(st.sampled_from([1, 16, 40, 256]))
    kind, side = draw(st.sampled_from(KINDS)), draw(st.sampled_from(["images", "texts"]))
    unequal = score in SETS and draw(st.booleans())
    gallery = made_up(kind, n, elements, size, seed, unequal=unequal)
    queries = made_up(draw(st.sampled_from(KINDS)), 8, of_query, size, seed + 1, unequal=unequal)
    beta = draw(st.floats(0, 1)) if score == "cora beta" else None
    if beta is not None:
        gallery, queries = (
            add_entities(one) if (side == "texts") == (one is gallery) else one
            for one in (gallery, queries)
        )
    codes = codes_of(model, gallery, side, blocks=draw(st.integers(1, 3)))
    wanted = {
        "k": draw(st.sampled_from([1, 5, 20, 200])),
        "included": np.arange(n) % 3 > 0 if draw(st.booleans()) else None,
        "below": draw(st.booleans()),
        "tolerance": TOLERANCE.get(score, 1e-6),
    }
    for used, resident in ((codes, None), (None, None), (codes, True)):
        scanner = Scanner(model, gallery, used, side, beta, resident)
        compare(scanner, gallery, queries, model, side=side, beta=beta, **wanted)


def test_a_method_whose_products_are_unknown_or_not_its_score_has_no_codes(
    small_model, monkeypatch
):
    model = small_model("vsepp")
    gallery, queries = made_up("duplicated", 300, 1, 16, 0), made_up("random", 5, 1, 16, 1)
    included = np.arange(300) % 2 > 0
    monkeypatch.setattr(type(model.method), "products", lambda *_: None)
    scanner = Scanner(model, gallery)
    found = compare(scanner, gallery, queries, model, 9, included=included)
    assert {hits.reranked for hits in found} == {150}
    with pytest.raises(ConfigError, match="vsepp"):
        codes_of(model, gallery)
    monkeypatch.undo()
    score = type(model.method).score
    monkeypatch.setattr(type(model.method), "score", lambda *sides: 2 * score(*sides) + 1)
    with pytest.raises(ConfigError, match="products"):
        codes_of(model, gallery)


def test_several_blocks_and_threads_give_the_same(small_model):
    model, n = small_model("dive smooth_chamfer"), 2 * BLOCK + 5
    gallery, queries = made_up("duplicated", n, 2, 16, 0), made_up("random", 20, 3, 16, 1)
    scanner = Scanner(model, gallery, codes_of(model, gallery, blocks=7))
    threads = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found = compare(scanner, gallery, queries, model, 10)
            assert max(hits.reranked for hits in found) < n / 4
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("score", SCORES)
@settings(EXAMPLES, max_examples=3)
@given(
    kind=st.sampled_from(KINDS),
    size=st.sampled_from([16, 17, 64, 1024]),
    seed=st.integers(0, 2**31),
    worst=st.booleans(),
)
def test_no_bound_is_below_its_score(small_model, score, kind, size, seed, worst):
    model = small_model(score)
    size = 16 if score == "pcme samples" else size
    elements = 3 if score in SETS else 1
    gallery = made_up(kind, 60, elements, size, seed, unequal=score in SETS)
    queries = made_up("random", 4, elements, size, seed + 1)
    if worst:
        queries = along_the_errors(gallery, queries)
    codes, form = codes_of(model, gallery), model.method.products("images")
    single = [double(queries).rows(slice(row, row + 1)) for row in range(len(queries))]
    bounds = codes.upper_bounds([form.ask(query, codes.longest) for query in single])
    assert (bounds >= all_scores(model, double(gallery), double(queries), "images")).all()


def along_the_errors(gallery, queries):
    """Queries without an error of their own, whose products have nearly the largest error: the
    signs of the errors of codes."""
    vectors = gallery.vectors.double().transpose(0, 1)
    quantiser = Quantiser.fit(vectors)
    codes, scales, _ = quantiser.items(vectors)
    means = 0 if quantiser.means is None else quantiser.means
    signs = (vectors - means - codes * scales[..., None]).sign().transpose(0, 1)
    signs = signs[: len(queries), : queries.vectors.shape[1]]
    return replace(queries, vectors=(signs / vectors.shape[2] ** 0.5).float())


def test_without_right_products_a_search_is_by_brute_force(small_model, monkeypatch):
    model = small_model("maxmatch topk")
    gallery, queries = made_up("random", 300, 4, 16, 0), made_up("random", 5, 4, 16, 1)
    codes = codes_of(model, gallery)
    try:
        monkeypatch.setattr(dots.Products, "__call__", lambda *_: np.zeros((67, 1), np.int32))
        dots.available.cache_clear()
        with pytest.warns(UserWarning, match="wrong"):
            assert not dots.available()
        monkeypatch.setattr(dots, "numkong", None)
        dots.available.cache_clear()
        assert not dots.available()
        found = compare(Scanner(model, gallery, codes), gallery, queries, model, 10)
    finally:
        dots.available.cache_clear()
    assert {hits.reranked for hits in found} == {300}


@pytest.mark.parametrize(("size", "spread"), [(1024, 0), (64, 1e-3)])
def test_codes_tell_items_apart(small_model, size, spread):
    """Vectors near a space of 200 dimensions, and vectors that crowd around one set."""
    model, space = small_model("dive smooth_chamfer"), torch.randn(200, 1024)
    gallery, queries = (made_up("random", n, 4, min(size, 200), n) for n in (1500, 10))

    def near(vectors):
        return vectors @ space + 0.05 * torch.randn(*vectors.shape[:2], 1024)

    vectors = gallery.vectors[:1] + spread * gallery.vectors
    if not spread:
        vectors = near(gallery.vectors)
        queries = Embeddings(normalize(near(queries.vectors), dim=2))
    gallery = Embeddings(normalize(vectors, dim=2))
    codes = codes_of(model, gallery)
    assert codes.sizes.size == min(size, 256)
    answers = compare(Scanner(model, gallery, codes), gallery, queries, model, 5)
    assert max(hits.reranked for hits in answers) < 150


def test_faults_are_errors_of_one_line(small_model, tmp_path):
    model, cora = small_model("dive mil"), small_model("cora")
    good, bad = made_up("random", 20, 2, 16, 0), made_up("random", 20, 2, 16, 0)
    bad.vectors[7, 1, 3] = torch.nan
    empty = replace(good, mask=torch.arange(20)[:, None].expand(20, 2) != 7)
    large = good.map(lambda part: part * 1e30)
    codes, folder = codes_of(model, good), tmp_path / "codes"
    halves = [[fault.rows(slice(0, 5)), fault.rows(slice(5, 20))] for fault in (bad, empty)]
    scanner, singles = Scanner(model, good, codes), good.elements([0])
    faults = [
        *(
            (DataError, "item 7", lambda h=h: write_codes(folder, model, h, "texts"))
            for h in halves
        ),
        *((DataError, "item 7", lambda f=f: Scanner(model, f)) for f in (bad, empty)),
        (DataError, "query 7", lambda: scanner.top(bad, 3)),
        (DataError, "the query has a number .* 1e.15$", lambda: scanner.top(large, 3)),
        (DataError, "Make the index again", lambda: Scanner(model, large, codes).top(good, 3)),
        (DataError, "real element", lambda: scanner.top(empty, 3)),
        (DataError, "no items", lambda: write_codes(folder, model, [], "images")),
        (DataError, "20 images", lambda: Scanner(model, good, codes, "texts")),
        (DataError, "dive", lambda: Scanner(small_model("vsepp"), good, codes)),
        (ConfigError, "beta", lambda: Scanner(model, good, beta=0.5)),
        (ConfigError, "beta", lambda: Scanner(cora, good, beta=1.5)),
        (DataError, "entities", lambda: Scanner(cora, singles, beta=0.5).top(good, 3)),
        (ConfigError, "at least 1", lambda: scanner.top(good, 0)),
    ]
    for error, words, call in faults:
        with pytest.raises(error, match=words):
            call()
        assert not folder.exists()
