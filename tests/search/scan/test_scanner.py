"""A scan gives the best items of the whole gallery, in a defined order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from brute_force import all_scores, check, codes_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_galleries import KINDS, SCORES, SETS, MakeModel, made_up, with_entities
from torch import Tensor
from torch.nn.functional import normalize

import manymatch
from manymatch import Model
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.answer import Side
from manymatch.search.scan import dots
from manymatch.search.scan.code_writer import write_codes
from manymatch.search.scan.codes import BLOCK, Codes
from manymatch.search.scan.exact import double
from manymatch.search.scan.quantiser import Quantiser
from manymatch.search.scan.scanner import Scanner
from manymatch.util.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def small_model(make_model: Callable[..., Path]) -> MakeModel:
    """The model of a score in `SCORES`, with fresh weights."""

    @cache
    def made(score: str) -> Model:
        method, changes = SCORES[score]
        return manymatch.load(make_model(method, settings=changes), "cpu")

    return made


EXAMPLES = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
TOLERANCE = {"msrm": 1e-4, "pcmepp": 1e-4, "pcme samples": 0.02}
"""Of scores in float32. The expanded squares of distances of these two cancel each other, which
loses digits where a distance is small."""


@pytest.mark.parametrize("score", SCORES)
@settings(EXAMPLES, max_examples=20)
@given(data=st.data())
def test_a_scan_equals_brute_force(small_model: MakeModel, score: str, data: st.DataObject) -> None:
    model = small_model(score)
    draw = data.draw
    n, seed = draw(st.integers(1, 150)), draw(st.integers(0, 2**31))
    elements = draw(st.sampled_from([1, 2, 4])) if score in SETS else 1
    of_query = draw(st.sampled_from([elements, 3])) if score in SETS else 1
    size = 16 if score == "pcme samples" else draw(st.sampled_from([1, 16, 40, 256]))
    kind, side = draw(st.sampled_from(KINDS)), draw(st.sampled_from(["images", "texts"]))
    unequal = score in SETS and draw(st.booleans())
    gallery = made_up(kind, n, elements, size, seed, unequal=unequal)
    queries = made_up(draw(st.sampled_from(KINDS)), 8, of_query, size, seed + 1, unequal=unequal)
    k = draw(st.sampled_from([1, 5, 20, 200]))
    included = np.arange(n) % 3 > 0 if draw(st.booleans()) else None

    single = all_scores(model, gallery, queries, side)
    exact = all_scores(model, double(gallery), double(queries), side)
    least = float(exact.median()) if draw(st.booleans()) else None
    codes = codes_of(model, gallery, side, blocks=draw(st.integers(1, 3)))
    for scanner in (
        Scanner(model, gallery, codes, side),
        Scanner(model, gallery, side=side),
        Scanner(model, gallery, codes, side, resident=True),
    ):
        for query, hits in enumerate(scanner.top(queries, k, included, least)):
            check(hits, single[query], exact[query], k, included, least, TOLERANCE.get(score, 1e-6))


@pytest.mark.parametrize("side", ["images", "texts"])
def test_entities_re_rank(small_model: MakeModel, side: Side) -> None:
    model = small_model("cora")
    for seed in range(10):
        kind = KINDS[seed % len(KINDS)]
        images, texts = made_up(kind, 200, 1, 32, seed), made_up("random", 40, 1, 32, seed + 1)
        texts = with_entities(texts)
        gallery, queries = (images, texts) if side == "images" else (texts, images)
        beta = seed / 9
        single = all_scores(model, gallery, queries, side, beta)
        exact = all_scores(model, double(gallery), double(queries), side, beta)
        codes = codes_of(model, gallery, side)
        for used, resident in ((codes, False), (None, False), (codes, True)):
            scanner = Scanner(model, gallery, used, side, beta, resident)
            for query, hits in enumerate(scanner.top(queries, 7)):
                check(hits, single[query], exact[query], 7)


def test_a_method_whose_products_are_unknown_or_not_its_score_has_no_codes(
    small_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model("vsepp")
    gallery, queries = made_up("duplicated", 300, 1, 16, 0), made_up("random", 5, 1, 16, 1)
    exact = all_scores(model, double(gallery), double(queries), "images")
    included = np.arange(300) % 2 > 0
    monkeypatch.setattr(type(model.method), "products", lambda *_: None)
    for query, hits in enumerate(Scanner(model, gallery).top(queries, 9, included)):
        check(hits, exact[query], exact[query], 9, included)
        assert hits.reranked == 150
    with pytest.raises(ConfigError, match="vsepp"):
        codes_of(model, gallery, "images")
    monkeypatch.undo()
    score = type(model.method).score
    monkeypatch.setattr(type(model.method), "score", lambda *sides: 2 * score(*sides) + 1)
    with pytest.raises(ConfigError, match="products"):
        codes_of(model, gallery, "images")


def test_several_blocks_and_threads_give_the_same(small_model: MakeModel) -> None:
    model, n = small_model("dive smooth_chamfer"), 2 * BLOCK + 5
    gallery, queries = made_up("duplicated", n, 2, 16, 0), made_up("random", 20, 3, 16, 1)
    exact = all_scores(model, double(gallery), double(queries), "images")
    scanner = Scanner(model, gallery, codes_of(model, gallery, "images", 7))
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            for query, hits in enumerate(scanner.top(queries, 10)):
                check(hits, exact[query], exact[query], 10)
                assert hits.reranked < n / 4
    finally:
        torch.set_num_threads(threads)


def test_items_that_all_have_one_score_are_in_the_order_of_rows(small_model: MakeModel) -> None:
    model = small_model("dive chamfer")
    gallery = made_up("equal", BLOCK + 100, 4, 16, 0)
    for resident in (False, True):
        scanner = Scanner(model, gallery, codes_of(model, gallery, "images"), resident=resident)
        (hits,) = scanner.top(made_up("random", 1, 4, 16, 1), 50)
        np.testing.assert_array_equal(hits.rows, np.arange(50))
        assert len(set(hits.scores.tolist())) == 1 and hits.reranked == len(gallery)


@pytest.mark.parametrize("score", SCORES)
@settings(EXAMPLES, max_examples=10)
@given(
    kind=st.sampled_from(KINDS),
    size=st.sampled_from([16, 17, 64, 1024]),
    seed=st.integers(0, 2**31),
    worst=st.booleans(),
)
def test_no_bound_is_below_its_score(
    small_model: MakeModel, score: str, kind: str, size: int, seed: int, worst: bool
) -> None:
    model = small_model(score)
    size = 16 if score == "pcme samples" else size
    elements = 3 if score in SETS else 1
    gallery = made_up(kind, 60, elements, size, seed, unequal=score in SETS)
    queries = made_up("random", 4, elements, size, seed + 1)
    if worst:
        queries = along_the_errors(gallery, queries)
    exact = all_scores(model, double(gallery), double(queries), "images")
    codes, form = codes_of(model, gallery, "images"), model.method.products("images")
    assert form is not None
    single = [double(queries).rows(slice(row, row + 1)) for row in range(len(queries))]
    bounds = codes.upper_bounds([form.ask(query, codes.longest) for query in single])
    assert bool((bounds >= exact.numpy()).all())


def along_the_errors(gallery: Embeddings, queries: Embeddings) -> Embeddings:
    """Queries without an error of their own, whose products have nearly the largest error: the
    signs of the errors of codes."""
    vectors = gallery.vectors.double().transpose(0, 1)
    quantiser = Quantiser.fit(vectors)
    codes, scales, _ = quantiser.items(vectors)
    means = 0 if quantiser.means is None else quantiser.means
    signs = (vectors - means - codes * scales[..., None]).sign().transpose(0, 1)
    signs = signs[: len(queries), : queries.vectors.shape[1]]
    return replace(queries, vectors=(signs / vectors.shape[2] ** 0.5).float())


@pytest.mark.parametrize("fault", ["missing", "wrong"])
def test_without_right_products_a_search_is_by_brute_force(
    fault: str, small_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model("maxmatch topk")
    gallery, queries = made_up("random", 300, 4, 16, 0), made_up("random", 5, 4, 16, 1)
    codes = codes_of(model, gallery, "images")
    with_library = Scanner(model, gallery, codes).top(queries, 10)
    if fault == "missing":
        monkeypatch.setattr(dots, "numkong", None)
    else:
        monkeypatch.setattr(dots.Products, "__call__", lambda *_: np.zeros((67, 1), np.int32))
    dots.available.cache_clear()
    try:
        with pytest.warns(UserWarning, match="wrong") if fault == "wrong" else nullcontext():
            assert not dots.available()
        without = Scanner(model, gallery, codes).top(queries, 10)
    finally:
        dots.available.cache_clear()
    for one, other in zip(with_library, without, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize(("size", "spread"), [(1024, 0), (64, 1e-2), (64, 1e-3)])
def test_codes_tell_items_apart(small_model: MakeModel, size: int, spread: float) -> None:
    """Vectors near a space of 200 dimensions, and vectors that crowd around one set."""
    model, space = small_model("dive smooth_chamfer"), torch.randn(200, 1024)
    gallery, queries = (made_up("random", n, 4, min(size, 200), n) for n in (3000, 10))

    def near(vectors: Tensor) -> Tensor:
        return vectors @ space + 0.05 * torch.randn(*vectors.shape[:2], 1024)

    vectors = gallery.vectors[:1] + spread * gallery.vectors
    if not spread:
        vectors, queries = (
            near(gallery.vectors),
            Embeddings(normalize(near(queries.vectors), dim=2)),
        )
    gallery = Embeddings(normalize(vectors, dim=2))
    codes = codes_of(model, gallery, "images")
    assert codes.sizes.size == min(size, 256)
    exact = all_scores(model, double(gallery), double(queries), "images")
    for query, hits in enumerate(Scanner(model, gallery, codes).top(queries, 5)):
        check(hits, exact[query], exact[query], 5)
        assert hits.reranked < 300


def test_faults_are_errors_of_one_line(small_model: MakeModel, tmp_path: Path) -> None:
    model = small_model("dive mil")
    good, bad = made_up("random", 20, 2, 16, 0), made_up("random", 20, 2, 16, 0)
    bad.vectors[7, 1, 3] = torch.nan
    empty = replace(good, mask=torch.arange(20)[:, None].expand(20, 2) != 7)
    codes, folder = codes_of(model, good, "images"), tmp_path / "codes"
    for fault in (bad, empty):
        with pytest.raises(DataError, match="item 7"):
            write_codes(folder, model, [fault.rows(slice(0, 5)), fault.rows(slice(5, 20))], "texts")
        with pytest.raises(DataError, match="item 7"):
            Scanner(model, fault)
        assert not folder.exists()
    with pytest.raises(DataError, match="query 7"):
        Scanner(model, good, codes).top(bad, 3)
    with pytest.raises(DataError, match="real element"):
        Scanner(model, good, codes).top(empty, 3)
    with pytest.raises(DataError, match="no items"):
        write_codes(folder, model, [], "images")
    with pytest.raises(DataError, match="20 images"):
        Scanner(model, good, codes, "texts")
    with pytest.raises(DataError, match="dive"):
        Scanner(small_model("vsepp"), good, codes)
    for beta, name in ((0.5, "dive mil"), (1.5, "cora")):
        with pytest.raises(ConfigError, match="beta"):
            Scanner(small_model(name), good, beta=beta)
    with pytest.raises(DataError, match="entities"):
        Scanner(small_model("cora"), good.elements([0]), beta=0.5).top(good, 3)
    with pytest.raises(ConfigError, match="at least 1"):
        Scanner(model, good, codes).top(good, 0)
    write_codes(folder, model, [good], "images")
    with (folder / "codes.bin").open("ab") as file:
        file.write(b"0")
    with pytest.raises(DataError, match=r"codes\.bin"):
        Codes(folder)
    (folder / "codes.json").unlink()
    with pytest.raises(DataError, match=r"codes\.json"):
        Codes(folder)
