"""Searches of sets in a table of LanceDB, against the index in files and against all exact scores.

    python benchmarks/search_table.py [--items 100000] [--methods dive maxmatch vsepp]
        [--kinds crowded random] [--flat 20]

Printed are, for each method and kind of vectors, the processor time of a query (median over 20),
the share of the true ten best that a search finds, and the share of answers that are proven exact;
then bytes, and the processor time of a build, of opening, and of an update of 1% of the items.

`engine flat` is what the engine offers without an index. One search for each vector of the query
gives 1,024 items and the product of the last of them. By these products an unseen item has a
largest score (Fagin's threshold), and an answer is proven if its tenth score is higher. `--flat` is
the number of queries; methods whose score reads more than `vectors` are left out. The vectors of
`crowded` items lie around 2,000 centres, and their queries are items with noise; those of `random`
items and queries are independent.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from measuring import arguments, clocks, peak_gib
from search_scan import BLOCK, made_up, untrained
from torch import Tensor
from torch.nn.functional import normalize

from manymatch import Model
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.methods.shared.products import ProductQuery
from manymatch.search.index.database import current
from manymatch.search.index.manifest import Manifest, model_identity
from manymatch.search.index.sources import Entry
from manymatch.search.index.stored import Stored, table_of
from manymatch.search.index.table import Table
from manymatch.search.index.table_writer import Engine, TableWriter
from manymatch.search.scan.code_writer import write_codes
from manymatch.search.scan.codes import Codes
from manymatch.search.scan.exact import ExactScores, single
from manymatch.search.scan.scanner import Scanner

SETS = ("dive", "maxmatch", "pvse")
"""Methods of sets of 4 vectors; the other methods have one vector for an item."""
SIZE, QUERIES, BEST, SEEN = 256, 20, 10, 1024
ENGINES: tuple[Engine, Engine] = ("lance", "lance-ivf")
Search = Callable[[int], tuple[np.ndarray, bool]]


def main() -> None:
    options = arguments(
        __doc__,
        items=100_000,
        methods=["dive", "maxmatch", "vsepp"],
        kinds=["crowded", "random"],
        flat=QUERIES,
    )
    for method in options.methods:
        for kind in options.kinds:
            with tempfile.TemporaryDirectory() as folder:
                elements = 4 if method in SETS else 1
                print(f"{method}, {kind}, K={elements}, D={SIZE}, {options.items:,} items")
                case(Path(folder), method, elements, kind, options.items, options.flat)
            print(f"  at most {peak_gib():.1f} GiB of memory until now")


def case(folder: Path, method: str, elements: int, kind: str, items: int, flat: int) -> None:
    torch.manual_seed(0)
    model = untrained(folder / "model", method)
    gallery, queries = (add_variances(one, method) for one in vectors(kind, items, elements))
    arrays = {name: part.numpy() for name, part in gallery.parts().items()}
    stored = Stored(folder, table_of([Entry(f"{row:08}.jpg") for row in range(items)]), arrays)

    def in_files() -> None:
        for part, array in arrays.items():
            np.save(folder / f"{part}.npy", array)
        blocks = (gallery.rows(slice(at, min(at + BLOCK, items))) for at in range(0, items, BLOCK))
        write_codes(folder / "codes", model, blocks, "images")

    builds: dict[str, Callable[[], None]] = {"files": in_files}
    for engine in ENGINES:
        builds[engine] = partial(write, folder / engine, model, stored, engine)
    for name, build in builds.items():
        seconds = timed(build)[1]
        size = sum(one.stat().st_size for one in of(folder, name) if one.is_file())
        print(f"  {name:11} build {seconds:6.1f} s, {size / 1e6:,.0f} MB", flush=True)
    scanners: dict[str, Scanner] = {"files": Scanner(model, gallery, Codes.open(folder / "codes"))}
    for engine in ENGINES:
        (_, table), first = timed(partial(Table.at, str(folder / engine)))
        scanners[engine], second = timed(partial(table.scanner, model, "images", None))
        print(f"  {engine:11} open  {first + second:6.1f} s")
    exact = ExactScores(model, gallery)
    all_rows = np.arange(items)
    scored = [timed(partial(exact, query, all_rows)) for query in single(queries)]
    truth = [scores for (_, scores), _ in scored]
    best = [np.argsort(-scores, kind="stable")[:BEST] for scores in truth]
    print(f"  brute force {1e3 * median(seconds for _, seconds in scored):6.0f} ms")
    for name, scanner in scanners.items():
        scanner.top(queries.rows(slice(0, 1)), BEST)
        tell(name, partial(search, scanner, queries), best)
    form, table = exact.form, current(str(folder / "lance"))
    assert form is not None
    if flat and form.reads_vectors_alone:
        asked = [form.ask(query, 1.0) for query in single(queries)]
        tell(
            "engine flat",
            lambda row: by_thresholds(table, asked[row], elements, truth[row]),
            best[:flat],
        )
    changed = all_rows % 100 == 0
    for engine in ENGINES:
        update = partial(write, folder / engine, model, stored, engine, changed)
        print(f"  {engine:11} update of 1% {timed(update)[1]:6.1f} s", flush=True)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, and its processor time in seconds."""
    results: list[Any] = []
    seconds = clocks(lambda: results.append(work())).processor
    return results[0], seconds


def search(scanner: Scanner, queries: Embeddings, row: int) -> tuple[np.ndarray, bool]:
    (hits,) = scanner.top(queries.rows(slice(row, row + 1)), BEST)
    return hits.rows, hits.exact


def of(folder: Path, name: str) -> list[Path]:
    """The files of an index."""
    if name != "files":
        return [*(folder / name).rglob("*")]
    return [*folder.glob("*.npy"), *(folder / "codes").iterdir()]


def tell(name: str, found: Search, best: list[np.ndarray]) -> None:
    """Print the time, the recall and the share of proven answers of a search."""
    answers = [timed(partial(found, row)) for row in range(len(best))]
    pairs = zip(answers, best, strict=True)
    recall = np.mean([len({*rows} & {*true}) / BEST for ((rows, _), _), true in pairs])
    proven = np.mean([exact for (_, exact), _ in answers])
    time = 1e3 * median(seconds for _, seconds in answers)
    print(f"  {name:11} {time:6.0f} ms, recall at 10 {recall:.3f}, proven {proven:.2f}", flush=True)


def by_thresholds(
    table: Any, query: ProductQuery, elements: int, scores: np.ndarray
) -> tuple[np.ndarray, bool]:
    """The best items that element searches find, and whether no unseen item can be better. The
    exact scores are given, so that they cost nothing."""
    seen, last = set[int](), []
    for vector in query.vectors.float().numpy():
        search = table.search(vector, vector_column_name="vectors").distance_type("dot")
        found = search.bypass_vector_index().select(["rank", "_distance"]).limit(SEEN).to_arrow()
        seen |= {int(rank) for rank in found["rank"].to_pylist()}
        last.append(1 - found["_distance"].to_numpy()[-1])
    most = query.reduce(torch.tensor(last)[None, :, None].expand(elements, -1, 1).clone(), None)
    rows = np.array(sorted(seen))
    rows = rows[np.argsort(-scores[rows], kind="stable")[:BEST]]
    return rows, bool(scores[rows[-1]] > float(most))


def vectors(kind: str, items: int, elements: int) -> tuple[Embeddings, Embeddings]:
    if kind == "random":
        return made_up(items, elements, SIZE, None), made_up(QUERIES, elements, SIZE, None)
    centres = torch.randn(2000, SIZE)
    gallery = torch.empty(items, elements, SIZE)
    for at in range(0, items, BLOCK):
        n = min(BLOCK, items - at)
        middle = centres[torch.randint(len(centres), (n,))] + torch.randn(n, SIZE)
        block = middle[:, None] + 0.7 * torch.randn(n, elements, SIZE)
        gallery[at : at + n] = normalize(block, dim=2)
    asked: Tensor = gallery[torch.randint(items, (QUERIES,))]
    asked = asked + 1.5 * torch.randn(QUERIES, 1, SIZE) / SIZE**0.5
    noise = 0.5 * torch.randn(QUERIES, elements, SIZE) / SIZE**0.5
    return Embeddings(gallery), Embeddings(normalize(asked + noise, dim=2))


def add_variances(items: Embeddings, method: str) -> Embeddings:
    """The items with a Gaussian's variances, if the method has them."""
    if method not in ("pcme", "msrm"):
        return items
    return replace(items, log_variance=torch.randn(len(items), SIZE) / 2 - 2)


def write(
    folder: Path, model: Model, stored: Stored, engine: Engine, changed: np.ndarray | None = None
) -> None:
    """Write the table; or the rows that `changed` tells, of a table that is there."""
    writer = TableWriter(str(folder), model, "images", engine)
    earlier, rows = writer.earlier, [(stored, row) for row in range(len(stored))]
    if earlier is not None and changed is not None:
        rows = [(stored if new else earlier, row) for row, new in enumerate(changed)]
    manifest = Manifest(
        model="model",
        identity=model_identity(model),
        source="",
        kind="folder",
        split=None,
        side="images",
        items=len(stored),
        broken=0,
    )
    writer.write(stored.items, rows, manifest)


if __name__ == "__main__":
    main()
