"""Full-size data from published features to the HDF5 store to shards, compared with plain copies.

    python benchmarks/data_path.py [--fraction 0.1] [--rounds 3] [--folder DIR]

Random features of COCO's shape, or a fraction of them, are written as SCAN's array (295 kB an
image) and as bottom-up attention's TSV (394 kB), imported to a store (148 kB) and written to
shards. Every step alternates with a plain copy of the file that the step reads; both read from the
disk and write to the disk (`fsync`). Wanted: at least 60% of the copy's speed by the bytes of the
source, and at most 2 GiB of memory. At full size 49 GB of source, its copy and 18 GB of store are
on the disk for the time of the run.
"""

import argparse
import base64
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import Times, arguments, compare, drop_from_cache, peak_gib

from manymatch.batch.scene_graph import SCHEMA
from manymatch.config.params import Published
from manymatch.datasets.base import CAPTIONS
from manymatch.datasets.image_files import ImageFolder
from manymatch.features.importers.importing import import_features
from manymatch.shards.write import Inputs, write_shards
from manymatch.util.files import remove
from manymatch.util.parts import Parts

IMAGES, REGIONS, WIDTH = 123_287, 36, 2048
BLOCK = 2**20
WANTED_RATIO, WANTED_GIB = 0.6, 2.0


def main() -> None:
    options = arguments(__doc__, fraction=0.1, rounds=3, folder=(None, "where the files are made"))
    images = round(IMAGES * options.fraction)
    print(f"{images} images, {REGIONS} x {WIDTH}; {options.rounds} rounds")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        layout = Place(Path(folder), images)
        layout.write_tables()
        with layout.made(layout.write_tsv) as source:
            compare_to_copy(
                "TSV to store", source, layout.store, layout.importing("butd_tsv"), options
            )
        with layout.made(layout.write_precomp) as source:
            compare_to_copy(
                "array to store", source, layout.store, layout.importing("scan"), options
            )
        layout.importing("scan", layout.write_precomp())()
        compare_to_copy("store to shards", layout.store, layout.shards, layout.pack, options)


class Place:
    """The paths of all files."""

    def __init__(self, folder: Path, images: int) -> None:
        self.folder, self.images = folder, images
        self.captions, self.graphs = folder / "coco.parquet", folder / "graphs.parquet"
        self.precomp, self.tsv = folder / "precomp", folder / "trainval.tsv"
        self.store, self.shards, self.raw = folder / "butd.h5", folder / "shards", folder / "raw"

    def write_tables(self) -> None:
        captions, graphs = [], []
        graph = {"objects": ["dog"], "names": ["dog"], "attributes": [[]], "relations": []}
        for image in range(self.images):
            row = {"image_id": f"{image}", "split": "train", "file": f"{image}.jpg", "labels": []}
            for number in range(5):
                caption_id = f"{image}#{number}"
                text = f"dog {number} of the picture {image}"
                captions.append({**row, "caption_id": caption_id, "caption": text})
                graphs.append({**graph, "caption_id": caption_id})
        pq.write_table(pa.Table.from_pylist(captions, schema=CAPTIONS), self.captions)
        pq.write_table(pa.Table.from_pylist(graphs, schema=SCHEMA), self.graphs)
        self.raw.mkdir()
        ImageFolder(absent=True).write(self.raw)
        self.precomp.mkdir()
        texts = "\n".join(str(row["caption"]) for row in captions)
        (self.precomp / "train_caps.txt").write_text(texts)

    def features(self) -> Iterator[np.ndarray]:
        """Different features for every image, at little cost."""
        pool = np.random.default_rng(0).random(2 * REGIONS * WIDTH, dtype=np.float32)
        for image in range(self.images):
            start = image % (REGIONS * WIDTH)
            yield pool[start : start + REGIONS * WIDTH].reshape(REGIONS, WIDTH)

    def write_precomp(self) -> Path:
        path = self.precomp / "train_ims.npy"
        shape = (self.images, REGIONS, WIDTH)
        with path.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for features in self.features():
                file.write(features.data)
        return path

    def write_tsv(self) -> Path:
        rows = np.tile(np.array([1, 2, 300, 400], np.float32), (REGIONS, 1))
        boxes = base64.b64encode(rows.tobytes())
        with self.tsv.open("wb") as file:
            for image, features in enumerate(self.features()):
                head = f"{image}\t640\t480\t{REGIONS}\t".encode()
                file.write(b"\t".join([head[:-1], boxes, base64.b64encode(features.tobytes())]))
                file.write(b"\n")
        return self.tsv

    @contextmanager
    def made(self, write: Callable[[], Path]) -> Iterator[Path]:
        source = write()
        yield source
        remove(source)

    def importing(self, format: str, source: Path | None = None) -> Callable[[], None]:
        path = self.tsv if format == "butd_tsv" else self.precomp
        settings = Published(format=format, path=str(path), max_regions=REGIONS)
        return lambda: import_features("butd", settings, self.captions, self.store)

    def pack(self) -> None:
        inputs = Inputs(self.captions, self.graphs, self.store, self.raw, 250, 112)
        write_shards(inputs, self.shards, parts=Parts(self.folder / "parts"))


def compare_to_copy(
    name: str, source: Path, target: Path, work: Callable[[], None], options: argparse.Namespace
) -> None:
    """Print the speeds of `work` and of a plain copy, which take turns."""
    runs: dict[str, list[Run]] = {"copy": [], "work": []}

    def measured(which: str, task: Callable[[], None]) -> Times:
        run = run_child(task, target)
        runs[which].append(run)
        return Times(run.seconds, run.processor)

    def prepare() -> None:
        remove(target)
        drop_from_cache(source)

    candidates = {
        "copy": partial(measured, "copy", lambda: plain_copy(source, target)),
        "work": partial(measured, "work", work),
    }
    compare(name, candidates, options.rounds, warm_up=0, before=prepare)
    remove(target)
    size = source.stat().st_size
    copy, imported = (statistics.median(run.seconds for run in runs[which]) for which in runs)
    moved = (size + runs["work"][0].written) / (2 * size)
    memory = max(run.memory for run in runs["work"])
    processor = statistics.median(run.processor for run in runs["work"])
    print(
        f"{name}: {size / imported / 2**20:.0f} MiB/s of the source, {copy / imported:.0%} of a "
        "copy's "
        f"{size / copy / 2**20:.0f} (wanted {WANTED_RATIO:.0%}); of bytes read and written "
        f"{moved * copy / imported:.0%}; processor time {processor:.1f} s; "
        f"peak memory {memory:.2f} GiB (at most {WANTED_GIB:.0f})"
    )


@dataclass(frozen=True)
class Run:
    """Seconds, seconds of processor time, peak memory in GiB, and bytes written."""

    seconds: float
    processor: float
    memory: float
    written: int


def run_child(task: Callable[[], None], target: Path) -> Run:
    """Run `task`, which writes `target`, in a separate process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(task, target, sender))
    process.start()
    sender.close()
    result: Run = receiver.recv()
    process.join()
    return result


def _measured(task: Callable[[], None], target: Path, answer: Connection) -> None:
    started, processor = time.perf_counter(), time.process_time()
    task()
    files = [path for path in (target, *target.rglob("*")) if path.is_file()]
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    answer.send(Run(seconds, processor, peak_gib(), sum(path.stat().st_size for path in files)))


def plain_copy(source: Path, target: Path) -> None:
    buffer = bytearray(BLOCK)
    view = memoryview(buffer)
    with source.open("rb", buffering=0) as file, target.open("wb", buffering=0) as copy:
        while count := file.readinto(buffer):
            copy.write(view[:count])


if __name__ == "__main__":
    main()
