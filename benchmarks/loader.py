"""The processor time of a worker that prepares batches for a GPU.

    OMP_NUM_THREADS=1 python benchmarks/loader.py

One worker reads shards of random features (36 regions of 2,048) and of made-up captions with scene
graphs. Printed are the median over epochs of its milliseconds for a batch, without the first epoch,
and the batches a second of eight workers.
"""

import multiprocessing
import random
import tempfile
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from data_path import Place
from measuring import arguments
from training_step import caption, made_up_words

from manymatch.batch.scene_graph import SCHEMA
from manymatch.datasets.base import CAPTIONS
from manymatch.scene_graphs.verbs import as_parsed
from manymatch.shards.read import Loader, batches

WORKERS = 8


def main() -> None:
    options = arguments(__doc__, stored=1280, images=128, rounds=5)
    with tempfile.TemporaryDirectory() as folder:
        layout = Place(Path(folder), options.stored)
        layout.write_tables()
        layout.importing("scan", layout.write_precomp())()
        describe(layout)
        layout.pack()
        for captions in (1, 5):
            for graphs in (False, True):
                took = worker_seconds(
                    layout.shards, captions, graphs, options.images, options.rounds
                )
                print(
                    f"captions {captions}, {'with' if graphs else 'without'} graphs: "
                    f"{1e3 * took:.1f} ms, {WORKERS / took:.0f} batches/s"
                )


def describe(layout: Place) -> None:
    """Write captions and graphs like those of `training_step.py` into the tables."""
    drawn = random.Random(0)
    captions = pq.read_table(layout.captions).to_pylist()
    graphs = pq.read_table(layout.graphs).to_pylist()
    for row, graph in zip(captions, graphs, strict=True):
        entry = caption(drawn)
        row["caption"] = entry.text
        graph |= entry.graph.to_dict()
    pq.write_table(pa.Table.from_pylist(captions, schema=CAPTIONS), layout.captions)
    pq.write_table(pa.Table.from_pylist(graphs, schema=SCHEMA), layout.graphs)


def worker_seconds(shards: Path, captions: int, graphs: bool, images: int, rounds: int) -> float:
    """The median over epochs of a worker's processor time for a batch."""
    vocabulary = made_up_words()
    loader = Loader(
        lambda epoch: batches(
            shards,
            "train",
            vocabulary,
            images,
            captions_per_image=captions,
            shuffle=(0, epoch),
            graphs=as_parsed if graphs else None,
        ),
        workers=1,
    )
    times = []
    for epoch in range(rounds + 1):
        before = processor_seconds() if epoch else 0.0
        count = sum(1 for _ in loader.epoch(epoch))
        times.append((processor_seconds() - before) / count)
    return median(times[1:])


def processor_seconds() -> float:
    """What the only child of this process has spent so far."""
    (child,) = multiprocessing.active_children()
    return int(Path(f"/proc/{child.pid}/schedstat").read_text().split()[0]) / 1e9


if __name__ == "__main__":
    main()
