"""Scores of embeddings that do not belong together."""

import pytest
import torch

import manymatch
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.search.scan.scanner import Scanner
from manymatch.util.errors import ConfigError, DataError

TEXTS = ["a red bird", "two dogs"]


@pytest.fixture(scope="module")
def vsepp(make_model):
    return manymatch.load(make_model("vsepp"), "cpu")


@pytest.fixture(scope="module")
def embedded(vsepp, pictures):
    return vsepp.encode_images(pictures), vsepp.encode_texts(TEXTS)


def test_embeddings_of_another_model_or_side_have_no_score(vsepp, make_model, pictures, embedded):
    other = manymatch.load(make_model("vse_infinity"), "cpu")  # whose shapes are the same
    theirs = other.encode_images(pictures), other.encode_texts(TEXTS)
    images, texts = embedded
    pairs = [(texts, images), (images, images), (theirs[0], texts), (images, theirs[1]), theirs]
    for pair in [*pairs, (images.rows(slice(0, 1)), theirs[1].float()), (images, texts.vectors)]:
        with pytest.raises(DataError):
            vsepp.score(*pair)
    for query in ("texts", "", None):
        with pytest.raises(ConfigError, match="query"):
            vsepp.score(images, texts, query)
        with pytest.raises(ConfigError, match="query"):
            vsepp.precision([0.5], query)
    scanner = Scanner(vsepp, images)
    for call, words in (
        (lambda: Scanner(other, images), "another model"),
        (lambda: Scanner(vsepp, images, side="texts"), "of images"),
        (lambda: scanner.top(theirs[1], 1), "another model"),
    ):
        with pytest.raises(DataError, match=words):
            call()
    assert len(scanner.top(images, 1)) == len(pictures)  # pictures find pictures


def test_arrays_from_elsewhere_have_scores(vsepp, embedded):
    images, texts = (side.vectors for side in embedded)
    scores = vsepp.score(*embedded)
    for dtype in (torch.float32, torch.float64, torch.float16):
        other = vsepp.score(Embeddings(images.to(dtype)), Embeddings(texts.clone()))
        torch.testing.assert_close(other, scores, atol=1e-3, rtol=1e-3)
    for vectors in (images[..., :-1], images[0]):
        with pytest.raises(DataError, match=r"numbers|expected"):
            vsepp.score(Embeddings(vectors), embedded[1])


def test_numbers_without_a_score_are_refused(vsepp, embedded):
    texts = embedded[1]
    v = texts.vectors
    shapes = [v * float("nan"), v / 0, v[:0], v[:, :0], v.repeat(1, 5, 1), v.long()]
    odd = [v.to_sparse(), v.to("meta"), v.numpy(), v.tolist()]
    some = torch.ones(len(v), 1, dtype=torch.bool)
    masks = [~some, some.float(), some[0], some.expand(-1, 9), [True]]
    masked = [Embeddings(v, mask=mask) for mask in masks]
    for other in [*map(Embeddings, [*shapes, *odd]), *masked]:
        for pair in ((other, texts), (Embeddings(v), other)):
            with pytest.raises(DataError) as raised:
                vsepp.score(*pair)
            assert str(raised.value).isprintable()
    with pytest.raises(DataError, match="a score is not finite"):
        vsepp.score(Embeddings(v * 1e30), Embeddings(v * 1e30))


@pytest.mark.parametrize("inference", ["intact", "hypergraph"])
def test_a_part_that_the_score_reads_is_named(inference, make_model):
    model = manymatch.load(make_model("msrm", settings={"inference": inference}), "cpu")
    vectors = Embeddings(model.encode_texts(TEXTS).vectors)
    with pytest.raises(DataError, match=r"without a (log_variance|candidate)"):
        model.score(vectors, vectors)
