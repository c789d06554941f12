"""Searches of one text among many images, against one read of the codes and one bare product.

    python benchmarks/search_scan.py [--items 100000] [--rounds 15] [--threads 2] [--cases 0 1 2 3]
    python benchmarks/search_scan.py --index photos.index [--rounds 50]

Vectors are random (of 1,024 numbers: near a space of 200 dimensions, as those of trained models
are), and a pause precedes each work, in which the threads come to rest. With `--index` whole
queries are measured. Wanted, for 100,000 items: 4 elements of 256 numbers at most 2.0 reads, 1
element at most 3 ms, 4 elements of 1,024 at most 25 ms; the score of one text by blocks in torch at
most 1.6 bare products, and the exact scores of all sets of 4 x 256 numbers at most 1.3; ten times
the items at most 10 times the time; a whole query at most 20 ms.
"""

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from measuring import arguments, clocks, compare
from torch.nn.functional import normalize

import manymatch
from manymatch import Model
from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import Preset
from manymatch.methods import build_method
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.answer import Answer
from manymatch.model.checkpoint import save_model
from manymatch.search.scan.code_writer import write_codes
from manymatch.search.scan.codes import Codes
from manymatch.search.scan.exact import ExactScores
from manymatch.search.scan.exact import single as exact_queries
from manymatch.search.scan.scanner import Scanner

CASES = [
    ("smooth-Chamfer", "dive", 4, 256),
    ("MaxMatch", "maxmatch", 4, 256),
    ("cosine", "vsepp", 1, 256),
    ("smooth-Chamfer", "dive", 4, 1024),
]
QUERIES, BEST, BLOCK = 8, 20, 8192
TEXTS = [
    f"a {colour} {thing} {where} a table"
    for colour in ("red", "blue", "green")
    for thing in ("bird", "dog", "boat", "house")
    for where in ("above", "beside", "in front of")
]


def main() -> None:
    options = arguments(
        __doc__,
        items=100_000,
        rounds=15,
        threads=2,
        cases=[*range(len(CASES))],
        index=(None, "measure whole queries of this index"),
    )
    torch.set_num_threads(options.threads)
    if options.index is not None:
        whole_queries(options.index, options.rounds)
        return
    for name, method, elements, size in (CASES[number] for number in options.cases):
        with tempfile.TemporaryDirectory() as folder:
            case(Path(folder), name, method, elements, size, options.items, options.rounds)


def case(
    folder: Path, name: str, method: str, elements: int, size: int, items: int, rounds: int
) -> None:
    torch.manual_seed(0)
    model = untrained(folder / "model", method)
    space = None if size < 512 else torch.randn(200, size) / size**0.5
    gallery, queries = (
        made_up(items, elements, size, space),
        made_up(QUERIES, elements, size, space),
    )
    blocks = (gallery.rows(slice(at, min(at + BLOCK, items))) for at in range(0, items, BLOCK))
    write_codes(folder / "codes", model, blocks, "images")
    scanner = Scanner(model, gallery, Codes.open(folder / "codes"))
    codes = torch.from_numpy(np.memmap(folder / "codes" / "codes.bin", np.int8, "c"))
    exact = ExactScores(model, gallery)
    rows = np.arange(items)
    single = [queries.rows(slice(row, row + 1)) for row in range(QUERIES)]
    doubles = exact_queries(queries)
    flat = gallery.vectors.flatten(0, 1)
    reranked: list[int] = []
    turns = itertools.count()

    def search() -> None:
        (hits,) = scanner.top(single[next(turns) % QUERIES], BEST)
        reranked.append(hits.reranked)

    def row() -> int:
        return next(turns) % QUERIES

    candidates: dict[str, Callable[[], object]] = {
        "search": search,
        "read": lambda: codes.view(torch.int64).max(),
        "product": lambda: flat @ single[row()].vectors[0].T,
        "blocks": lambda: model.method.score(gallery, single[row()]),
        "all": lambda: exact(doubles[row()], rows),
    }
    with torch.inference_mode():
        compare(
            f"{name}, K={elements}, D={size}",
            candidates,
            rounds,
            bases=["read", "product"],
            before=lambda: time.sleep(0.01),
        )
    print(f"  {statistics.median(reranked):.0f} items scored exactly")


def whole_queries(folder: Path, rounds: int) -> None:
    index = manymatch.Index.open(folder)
    answers: list[Answer] = []

    def search(text: str) -> None:
        answers.append(index.search(text, BEST))

    search(TEXTS[0])  # loads the model
    steps: dict[str, list[float]] = {}
    for number in range(rounds):
        time.sleep(0.01)
        wall, processor = clocks(partial(search, TEXTS[number % len(TEXTS)]))
        times = {"wall": 1e3 * wall, "processor": 1e3 * processor, **dict(answers[-1].ms)}
        for step, milliseconds in times.items():
            steps.setdefault(step, []).append(milliseconds)
    print(f"{folder.name}: {len(index)} items, {rounds} queries, load {os.getloadavg()[0]:.1f}")
    for step, values in steps.items():
        print(f"  {step:9} median {statistics.median(values):.1f} ms, least {min(values):.1f} ms")


def untrained(folder: Path, method: str) -> Model:
    learned = {"word_vectors": "learned"}
    settings = {"vsepp": {}, "cora": learned}.get(method, {"text": learned})
    vocabulary = Vocabulary(Vocabulary.SPECIAL)
    built = build_method(method, settings, vocabulary=vocabulary, feature_width=8)
    facts = {"extraction": {"backbone": "none"}, "parser": "en_core_web_sm"}
    preset = Preset(method=method, features="lite0", model=settings)
    save_model(folder, built, preset, vocabulary, 8, **facts)
    return manymatch.load(folder, "cpu")


def made_up(items: int, elements: int, size: int, space: torch.Tensor | None) -> Embeddings:
    """Random unit vectors, near the rows of `space` if it is given."""
    vectors = torch.empty(items, elements, size)
    for at in range(0, items, BLOCK):
        block = vectors[at : at + BLOCK].normal_()
        if space is not None:
            block.mul_(0.03).add_(torch.randn(*block.shape[:2], len(space)) @ space)
        block.copy_(normalize(block, dim=2))
    return Embeddings(vectors)


if __name__ == "__main__":
    main()
