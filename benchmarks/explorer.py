"""COCO's 5,000 test images in `manymatch explore`: the seconds of an answer, and the memory.

    python benchmarks/explorer.py
    python benchmarks/explorer.py --keep /tmp/coco

The results are made up: nine methods with random embeddings, the first 100 items of 25,000 captions
and 5,000 images, a caption table with COCO's other splits, and 40,000 judged pairs.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import arguments

from manymatch.config.layout import Layout
from manymatch.datasets.base import CAPTIONS, RELEVANCE
from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import write_ranked

METHODS = [f"method-{number}" for number in range(1, 10)]
WORDS = ["a", "two", "red", "black", "dog", "man", "girl", "child", "bird", "runs", "sits", "near"]
DEPTH, WIDTH, JUDGED = 100, 32, 40_000
REQUESTS = {
    "about": "about",
    "queries, with marks": "queries",
    "filter: A right, B wrong": "queries?right=method-1&wrong=method-9",
    "filter: a word": "queries?word=dog",
    "filter: misses judged true": "queries?first=true:method-3",
    "filter: several, sorted": "queries?word=dog&right=method-1&wrong=method-2&sort=words",
    "sort: rank": "queries?sort=rank_method-5&descending=true",
    "sort: difference": "queries?sort=spread&descending=true",
    "page 400": "queries?page=400&sort=objects",
    "images ask": "queries?way=i2t&sort=positives",
    "one query": "query?row=12345",
    "not judged": "unjudged?k=1",
    "not judged, among ten": "unjudged?k=10",
    "hubs": "hubs",
    "map": "map?method=method-1&export=json",
}


def make(folder: Path, images: int) -> None:
    """Write the results, the caption table, the graphs and the judged pairs."""
    layout, random = Layout(folder), np.random.default_rng(0)
    layout.captions("coco").parent.mkdir(parents=True)
    layout.scene_graphs("coco").parent.mkdir(parents=True)
    rows = {"test": images, "train": 22 * images}
    names = [(split, f"{split}-{row:06d}") for split, count in rows.items() for row in range(count)]
    texts = [" ".join(words) for words in random.choice(WORDS, (1000, 11))]
    table = [
        {"image_id": image, "caption_id": f"{image}#{k}", "split": split, "file": f"{image}.jpg"}
        | {"caption": texts[random.integers(1000)], "labels": []}
        for split, image in names
        for k in range(5)
    ]
    pq.write_table(pa.Table.from_pylist(table, CAPTIONS), layout.captions("coco"))
    graphs = [{"caption_id": row["caption_id"], "objects": ["dog"] * 3} for row in table]
    pq.write_table(pa.Table.from_pylist(graphs), layout.scene_graphs("coco"))
    image_ids = [name for split, name in names if split == "test"]
    caption_ids = [f"{name}#{k}" for name in image_ids for k in range(5)]
    pairs = random.integers(images, size=JUDGED), random.integers(5 * images, size=JUDGED)
    named = [[image_ids[row] for row in pairs[0]], [caption_ids[row] for row in pairs[1]]]
    pq.write_table(pa.table(named, schema=RELEVANCE), layout.relevance("coco"))
    for number, name in enumerate(METHODS):
        pictures = random.normal(size=(images, WIDTH)).astype(np.float32)
        noise = random.normal(size=(5 * images, WIDTH)).astype(np.float32)
        captions = pictures.repeat(5, 0) + (1 + number / 20) * noise
        files = layout.result("coco", name)
        for way, ids, queries, items in (
            ("i2t", image_ids, pictures, captions),
            ("t2i", caption_ids, captions, pictures),
        ):
            ranks, best, scores = ranking(queries, items, way)
            files.run.mkdir(parents=True, exist_ok=True)
            write_ranked(files.run / f"{way}.parquet", ids, ranks, best, scores, queries[:, :2])
        recall = {"r1": 1.0, "r5": 1.0, "r10": 1.0, "medr": 1.0, "meanr": 1.0}
        Metrics.model_validate({"i2t": recall, "t2i": recall, "rsum": 300 - number}).write(
            files.full
        )
        facts = {"dataset": "coco", "preset": name, "method": "vsepp", "split": "test", "seed": 0}
        sizes = {"images": images, "captions": 5 * images, "features": "none"}
        origin = facts | sizes | {"setting": "external"}
        Provenance.model_validate(origin).write(files.provenance)
    (folder / "params.yaml").write_text("datasets: [coco]\n")


def ranking(queries: np.ndarray, items: np.ndarray, way: str) -> list[np.ndarray]:
    """Ranks, items and scores of each query, block by block."""
    found = []
    for first in range(0, len(queries), 1000):
        scores = queries[first : first + 1000] @ items.T
        rows = np.arange(first, first + len(scores))
        own = scores[np.arange(len(rows))[:, None], (rows // 5)[:, None]]
        if way == "i2t":
            columns = 5 * rows[:, None] + np.arange(5)
            own = np.take_along_axis(scores, columns, 1).max(1, keepdims=True)
        best = np.argpartition(-scores, DEPTH, 1)[:, :DEPTH]
        values = np.take_along_axis(scores, best, 1)
        order = np.argsort(-values, 1)
        ordered = (np.take_along_axis(part, order, 1) for part in (best, values))
        found.append(((scores > own).sum(1) + 1, *ordered))
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


@contextmanager
def service(folder: Path) -> Iterator[tuple[httpx.Client, psutil.Process]]:
    """A client of `manymatch explore` in `folder`, and the process of the command."""
    command = [sys.executable, "-m", "manymatch", "explore", "coco", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stderr
        (address,) = next(filter(None, map(re.compile(r"http://\S+").findall, process.stderr)))
        with httpx.Client(base_url=f"{address}/explore/", timeout=60) as client:
            yield client, psutil.Process(process.pid)
        process.terminate()


def processor_ms(process: psutil.Process) -> float:
    """The milliseconds of the processor that a process has used."""
    return 1000 * sum(process.cpu_times()[:2])


def measure(folder: Path, rounds: int) -> None:
    started = time.perf_counter()
    with service(folder) as (client, process):
        print(f"the command prints the address after {time.perf_counter() - started:.2f} s")
        before, started = processor_ms(process), time.perf_counter()
        for path in ("", "about", "queries?whole=false"):
            client.get(path, follow_redirects=True).raise_for_status()
        seconds, taken = time.perf_counter() - started, processor_ms(process) - before
        print(
            f"the first page, with its rows: {seconds:.2f} s "
            f"({taken:.0f} ms of the processor, after {before:.0f} ms for the start)"
        )
        for what, path in REQUESTS.items():
            times, used = list[float](), [processor_ms(process)]
            for _ in range(rounds):
                started = time.perf_counter()
                size = len(client.get(path).raise_for_status().content)
                times.append(1000 * (time.perf_counter() - started))
                used.append(processor_ms(process))
            first, others = used[1] - used[0], (used[-1] - used[1]) / (rounds - 1)
            print(
                f"{what:30} first {times[0]:5.0f} ms, then {median(times[1:]):4.0f} ms "
                f"({first:4.0f} and {others:3.0f} ms of the processor), {size / 1000:4.0f} kB"
            )
        status = Path(f"/proc/{process.pid}/status").read_text()
        (peak,) = re.findall(r"VmHWM:\s+(\d+)", status)
        print(f"memory, at most: {int(peak) / 1024:.0f} MiB")


def main() -> None:
    options: Any = arguments(
        __doc__ or "", images=5000, rounds=15, keep=(None, "a folder of results")
    )
    with TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        if not (folder / "params.yaml").is_file():
            make(folder, options.images)
        measure(folder, options.rounds)


if __name__ == "__main__":
    main()
