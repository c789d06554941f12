"""COCO's protocols against naive loops and the ECCV Caption package called directly."""

import contextlib
import importlib
import io
import math
import statistics
import warnings

import numpy as np
import pytest
import torch
from made_scores import consecutive_index, distinct, naive_ranks, precision_at_r, ranked_split

from manymatch.evaluation.protocols.coco import coco_1k, cxc, eccv_caption, pmrp
from manymatch.evaluation.protocols.ranked_split import DoesNotApply
from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.protocols.relevance import Labels

N, M = 5000, 25_000


def _constructed(seed):
    """Vectors of images and captions that find each other often but not always."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(N, 12, generator=generator)
    noise = torch.randn(M, 12, generator=generator)
    return images, images.repeat_interleave(5, 0) + noise


@pytest.fixture(scope="module")
def table():
    """Scores of all images and captions."""
    images, texts = _constructed(0)
    return images @ texts.T


@pytest.fixture(scope="module")
def package():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("eccv_caption").Metrics()


@pytest.fixture(scope="module")
def coco(package, table):
    """COCO's 5,000 test images and 25,000 captions with random, better-than-chance scores; the ids
    as in file names and annotations."""
    captions = package.coco_ids.tolist()
    of_caption = package.coco_gts["t2i"]
    images = list(dict.fromkeys(of_caption[caption][0] for caption in captions))
    position = {image: row for row, image in enumerate(images)}
    captions.sort(key=lambda caption: position[of_caption[caption][0]])
    return ranked_split(
        table,
        consecutive_index(N, 5),
        image_ids=[f"COCO_val2014_{image:012d}" for image in images],
        caption_ids=[str(caption) for caption in captions],
        depth=100,
    )


def _ranked(of):
    images = [int(name[-12:]) for name in of.embedded.image_ids]
    captions = [int(name) for name in of.embedded.caption_ids]
    i2t, t2i = of.ranking.i2t.items.tolist(), of.ranking.t2i.items.tolist()
    return {
        "i2t": {images[row]: [captions[at] for at in best] for row, best in enumerate(i2t)},
        "t2i": {captions[row]: [images[at] for at in best] for row, best in enumerate(t2i)},
    }


@pytest.mark.slow
def test_eccv_caption_equals_the_package(coco, package):
    ranked = _ranked(coco)
    metrics = ("eccv_map_at_r", "eccv_rprecision", "eccv_r1")
    with contextlib.redirect_stderr(io.StringIO()):
        expected = package.compute_all_metrics(ranked["i2t"], ranked["t2i"], metrics, verbose=False)
    result = eccv_caption(coco)
    names = zip(("map_at_r", "r_precision", "r1"), metrics, strict=True)
    for ours, theirs in names:
        for way in ("i2t", "t2i"):
            assert result[way][ours] == pytest.approx(100 * expected[theirs][way])
            assert 0.1 < result[way][ours] < 99


@pytest.mark.slow
def test_cxc_and_5k_equal_the_package(coco, package):
    ranked, result, own = _ranked(coco), cxc(coco), recall_of(coco.ranking)
    for cut in (1, 5, 10):
        theirs = package.cxc_recalls(ranked, "all", K=cut)
        pairs = package.coco_5k_recalls(ranked, "all", K=cut)
        for way in ("i2t", "t2i"):
            assert result[way][f"r{cut}"] == pytest.approx(100 * theirs[way])
            assert own[way][f"r{cut}"] == pytest.approx(100 * pairs[way])


@pytest.fixture
def five_folds(monkeypatch):
    """20 images are the whole split, and 4 a fold."""
    monkeypatch.setattr("manymatch.evaluation.protocols.coco.IMAGES", 20)
    monkeypatch.setattr("manymatch.evaluation.protocols.coco.FOLD", 4)


def test_1k_is_the_mean_of_the_recalls_of_each_fold_alone(five_folds):
    table, index = distinct(20, 40, 0), consecutive_index(4, 2).tolist()
    values = coco_1k(ranked_split(table, consecutive_index(20, 2)))
    folds = [naive_ranks(table[i : i + 4, 2 * i : 2 * i + 8], index) for i in range(0, 20, 4)]
    total = 0.0
    for way, ranks in zip(("i2t", "t2i"), zip(*folds, strict=True), strict=True):
        for k in (1, 5, 10):
            shares = [100 * statistics.fmean(rank <= k for rank in fold) for fold in ranks]
            assert values[way][f"r{k}"] == pytest.approx(statistics.fmean(shares))
            total += values[way][f"r{k}"]
        medians = [math.floor(statistics.median(fold)) for fold in ranks]
        assert values[way]["medr"] == pytest.approx(statistics.fmean(medians))
    assert values["rsum"] == pytest.approx(total)


def test_a_shallow_ranking_is_made_deeper():
    of = ranked_split(distinct(20, 40, 0), consecutive_index(20, 2), depth=5)
    assert of.ranked(5) is of.ranking
    deeper = of.ranked(30)
    assert (deeper.i2t.items.shape, deeper.t2i.items.shape) == ((20, 30), (40, 20))
    assert torch.equal(deeper.i2t.items[:, :5], of.ranking.i2t.items)
    everything = ranked_split(distinct(20, 40, 0), consecutive_index(20, 2), depth=99)
    assert everything.ranked(1000) is everything.ranking


@pytest.mark.parametrize(
    ("protocol", "labels", "words"),
    [
        (coco_1k, None, "5,000 test images, not 3"),
        (eccv_caption, None, "ECCV Caption: images: 1,261 of the 1,261 judged"),
        (cxc, None, "CxC: images: 5,000 of the 5,000"),
        (pmrp, None, "object labels"),
        (pmrp, Labels([(), (), ()]), "object labels"),
    ],
)
def test_what_a_split_lacks_for_a_protocol_is_told(protocol, labels, words):
    with pytest.raises(DoesNotApply, match=words):
        protocol(ranked_split(distinct(3, 6, 0), consecutive_index(3, 2), labels))


def _labels(n, seed):
    rng = np.random.default_rng(seed)
    return [tuple(int(x) for x in np.flatnonzero(rng.random(6) < 0.3)) for _ in range(n)]


def _naive_pmrp(table, index, labels):
    """The means over zeta and, flat, those of each: `{"i2t": ., "t2i": ., "zeta0": {...}}`."""
    known = [image for image, of_image in enumerate(labels) if of_image]
    texts = [text for text, image in enumerate(index) if image in known]
    numbers = {}
    for zeta in (0, 1, 2):
        values = {"i2t": [], "t2i": []}
        for image in known:
            right = [len({*labels[image]} ^ {*labels[index[text]]}) <= zeta for text in texts]
            scores = [table[image, text].item() for text in texts]
            values["i2t"].append(precision_at_r(scores, right))
        for text in texts:
            right = [len({*labels[image]} ^ {*labels[index[text]]}) <= zeta for image in known]
            scores = [table[image, text].item() for image in known]
            values["t2i"].append(precision_at_r(scores, right))
        alone = {way: 100 * statistics.fmean(number) for way, number in values.items()}
        numbers[f"zeta{zeta}"] = pytest.approx(alone)
    means = {
        way: statistics.fmean(number.expected[way] for number in numbers.values()) for way in alone
    }
    return numbers | {way: pytest.approx(value) for way, value in means.items()}


@pytest.mark.parametrize("ties", [False, True])
def test_pmrp_equals_a_naive_loop(ties):
    for seed in range(4):
        n, index = 9, torch.arange(9).repeat_interleave(torch.tensor([1, 3, 2, 5, 1, 1, 4, 2, 2]))
        table = distinct(n, len(index), seed)
        table = table // 20 if ties else table
        labels = _labels(n, seed)
        assert any(labels)
        values = pmrp(ranked_split(table, index, Labels(labels)))
        assert values == {"all": _naive_pmrp(table, index.tolist(), labels)}


def test_pmrp_of_folds_is_that_of_each_alone(five_folds):
    table, labels = distinct(20, 40, 0), _labels(20, 0)
    folds = [
        _naive_pmrp(
            table[i : i + 4, 2 * i : 2 * i + 8], consecutive_index(4, 2).tolist(), labels[i : i + 4]
        )
        for i in range(0, 20, 4)
    ]
    values = pmrp(ranked_split(table, consecutive_index(20, 2), Labels(labels)))
    for way in ("i2t", "t2i"):
        means = statistics.fmean(fold[way].expected for fold in folds)
        assert values["1k"][way] == pytest.approx(means)
        assert values["1k"][way] != pytest.approx(values["5k"][way])
        strict = statistics.fmean(fold["zeta0"].expected[way] for fold in folds)
        assert values["1k"]["zeta0"][way] == pytest.approx(strict)
