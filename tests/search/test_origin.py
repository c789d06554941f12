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
def other(make_model):
    """A model of another method, whose embeddings have the same shape."""
    return manymatch.load(make_model("vse_infinity"), "cpu")


def test_embeddings_of_another_model_or_side_have_no_score(vsepp, other, pictures):
    images, texts = vsepp.encode_images(pictures), vsepp.encode_texts(TEXTS)
    theirs = other.encode_images(pictures), other.encode_texts(TEXTS)
    assert vsepp.score(images, texts).shape == (len(pictures), len(TEXTS))
    pairs = [(texts, images), (images, images), (theirs[0], texts), (images, theirs[1]), theirs]
    for pair in [*pairs, (images.rows(slice(0, 1)), theirs[1].float()), (images, texts.vectors)]:
        with pytest.raises(DataError):
            vsepp.score(*pair)
    for query in ("texts", "images", "", None):
        asking = query
        with pytest.raises(ConfigError, match="query"):
            vsepp.score(images, texts, asking)
        with pytest.raises(ConfigError, match="query"):
            vsepp.precision([0.5], asking)


def test_arrays_from_elsewhere_have_scores(vsepp, pictures):
    images, texts = vsepp.encode_images(pictures), vsepp.encode_texts(TEXTS)
    arrays = Embeddings(images.vectors.clone()), Embeddings(texts.vectors.clone())
    scores = vsepp.score(images, texts)
    torch.testing.assert_close(vsepp.score(*arrays), scores)
    for dtype in (torch.float64, torch.float16):
        other = vsepp.score(Embeddings(images.vectors.to(dtype)), arrays[1])
        torch.testing.assert_close(other, scores, atol=1e-3, rtol=1e-3)
    for vectors in (images.vectors[..., :-1], images.vectors[0]):
        with pytest.raises(DataError, match=r"numbers|expected"):
            vsepp.score(Embeddings(vectors), texts)


def test_a_scan_takes_the_embeddings_of_its_model(vsepp, other, pictures):
    images = vsepp.encode_images(pictures)
    with pytest.raises(DataError, match="another model"):
        Scanner(other, images)
    with pytest.raises(DataError, match="of images"):
        Scanner(vsepp, images, side="texts")
    scanner = Scanner(vsepp, images)
    with pytest.raises(DataError, match="another model"):
        scanner.top(other.encode_texts(TEXTS), 1)
    assert len(scanner.top(images, 1)) == len(pictures)  # pictures find pictures


def test_numbers_without_a_score_are_refused(vsepp):
    texts = vsepp.encode_texts(TEXTS)
    v = texts.vectors
    shapes = [v * float("nan"), v / 0, v[:0], v[:, :0], v.repeat(1, 5, 1), v.long()]
    odd = [v.to_sparse(), v.to("meta")]
    some = torch.ones(len(v), 1, dtype=torch.bool)
    masks = [~some, some.float(), some[0], some.expand(-1, 9), [True]]
    masked = [Embeddings(v, mask=mask) for mask in masks]
    faulty = [*shapes, *odd, v.numpy(), v.tolist()]
    for other in [*map(Embeddings, faulty), *masked]:
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
