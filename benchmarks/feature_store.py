"""Feature store: memory use with a store larger than memory, and speed compared with plain reads.

    python benchmarks/feature_store.py [--gib 36] [--real-gib 2] [--folder DIR]

The benchmark prints:
- peak memory of a process that reads all of a sparse store of `--gib` GiB, sequentially and in
  random batches (at most 2 GiB);
- time to read a real store of `--real-gib` GiB in order, relative to a plain read of the same
  bytes into one small buffer (wanted: at most 1.3). Checking a row at the first read costs nothing
  if the file comes from the disk, but shows if the file is already in memory;
- random batches of 128 images per second.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from measuring import arguments, compare, drop_from_cache, peak_gib

from manymatch.features import layout
from manymatch.features.rows import RowFile
from manymatch.features.store import FeatureStore, FeatureWriter

REGIONS, WIDTH = 36, 2048
ROW_BYTES = REGIONS * WIDTH * 2
ROUNDS = 5


def main() -> None:
    options = arguments(__doc__, gib=36.0, real_gib=2.0, folder=(None, "where the stores are made"))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure_memory(Path(folder) / "sparse.h5", int(options.gib * 2**30) // ROW_BYTES)
        measure_speed(Path(folder) / "real.h5", int(options.real_gib * 2**30) // ROW_BYTES)


def measure_memory(path: Path, images: int) -> None:
    make_sparse(path, images)
    with FeatureStore(path) as store:
        started = time.perf_counter()
        for _, (features, _, _) in store.blocks(128):
            assert features.dtype == np.float16
        seconds = time.perf_counter() - started
        random_batches(store, 200)
    size = path.stat().st_size / 2**30
    print(f"sparse store {size:.1f} GiB, {images} images: read in order in {seconds:.1f} s")
    print(f"peak memory {peak_gib():.2f} GiB (at most 2)")
    path.unlink()


def make_sparse(path: Path, images: int) -> None:
    """Write a sparse store of zeros, with correct checksums, that needs no space on the disk."""
    ids = [str(number) for number in range(images)]
    layout.create(path, ids, REGIONS, WIDTH, "float16", False, {})
    rows = RowFile(path, "r+b")
    zeros = np.zeros((REGIONS, WIDTH), np.float16)
    checksums = [layout.row_checksum(zeros, None, REGIONS, image_id) for image_id in ids]
    rows.put("checksum", 0, np.array(checksums, np.uint64))
    rows.put("n_regions", 0, np.full(images, REGIONS, np.int32))
    rows.close()


def measure_speed(path: Path, images: int) -> None:
    rng = np.random.default_rng(0)
    with FeatureWriter(
        path, [str(number) for number in range(images)], max_regions=REGIONS, width=WIDTH
    ) as writer:
        for row in range(images):
            writer.write(row, rng.random((REGIONS, WIDTH), dtype=np.float32))
    compare_reads(path, "from the disk, checked", first_read, drop_from_cache)
    compare_reads(path, "from the page cache, checked", first_read)
    with FeatureStore(path) as store:
        compare_reads(path, "from the page cache, checked before", lambda _: read(store))
        started = time.perf_counter()
        random_batches(store, 50)
        seconds = time.perf_counter() - started
    print(f"random batches of 128: {50 / seconds:.1f} a second, {6400 / seconds:.0f} images/s")


Action = Callable[[Path], None]


def compare_reads(
    path: Path, state: str, reader: Action, prepare: Action = lambda path: None
) -> None:
    """Print the times of `reader` and of plain reads, and the speed of both."""
    candidates = {"plain": partial(plain_read, path), "store": partial(reader, path)}
    size = path.stat().st_size / 2**30
    times = compare(f"{size:.1f} GiB {state}", candidates, ROUNDS, before=partial(prepare, path))
    for name, measured in times.items():
        print(f"  {name}: {size / median(one.wall for one in measured):.2f} GiB/s")


def plain_read(path: Path) -> None:
    buffer = bytearray(32 * ROW_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def first_read(path: Path) -> None:
    with FeatureStore(path) as store:
        read(store)


def read(store: FeatureStore) -> None:
    for _ in store.blocks():
        pass


def random_batches(store: FeatureStore, count: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(count):
        store.read(rng.integers(0, len(store), 128))


if __name__ == "__main__":
    main()
