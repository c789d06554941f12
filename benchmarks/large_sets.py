"""Bytes, hours and money for a set of pairs that is larger than this machine, from measured rates.

    python benchmarks/large_sets.py [--pairs 12.4e6 400e6] [--core-hour 0.05] [--gpu-hour 3]
        [--tb-month 23] [--cores 64] [--gpus 8] [--epochs 10]

The script prints the table of docs/scaling.md, which says where each rate is from. Prices are
assumptions in dollars: give your own. An image has one caption.
"""

from measuring import arguments

INDEX_BYTES = 4096 + 1072 + 200
"""The index of a pair has 4 x 256 numbers: embeddings, codes, and about 200 bytes of the table."""
SHARD_BYTES = 135_400
BYTES = {
    "Pictures at 224 pixels (11.7 KB each)": 11_700,
    "Features `lite0`, 49 x 1,280 numbers (126 KB)": 126_300,
    "Shards of these (135 KB)": SHARD_BYTES,
    "Captions and scene graphs (91 bytes)": 91,
    "Index of sets of 4 x 256 numbers (5.4 KB, of which codes 1.1 KB)": INDEX_BYTES,
}
"""Bytes of a pair."""
CORE_SECONDS = {
    "Features `lite0` (31 ms)": 0.0309,
    "Scene graphs (2.2 ms a caption)": 0.00215,
    "Shards (1.3 ms)": 0.0013,
    "Index from shards (1.2 ms)": 0.0012,
}
"""Seconds of processor time for a pair, on one core."""
VSEPP, DIVE = 0.013 / 128, 0.040 / 128
"""Seconds of one H200 for a pair in an epoch, with 128 images a step."""
QUERY_SECONDS = 0.143e-6
"""Seconds of processor time that a search takes for each item whose codes are read."""


def main() -> None:
    options = arguments(
        __doc__,
        pairs=[12.4e6, 400e6],
        core_hour=0.05,
        gpu_hour=3.0,
        tb_month=23.0,
        cores=64,
        gpus=8,
        epochs=10,
    )
    prepared = sum(CORE_SECONDS.values()) / 3600
    trained = options.epochs * DIVE / 3600
    stored = (SHARD_BYTES + INDEX_BYTES) / 1e12
    rows = {
        **{f"{name}, TB": [size / 1e12] for name, size in BYTES.items()},
        **{f"{name}, core hours": [seconds / 3600] for name, seconds in CORE_SECONDS.items()},
        "An epoch of vsepp, of dive on an H200 (13 and 40 ms a step of 128), GPU hours": [
            VSEPP / 3600,
            DIVE / 3600,
        ],
        f"All stages on {options.cores} cores, hours and dollars": [
            prepared / options.cores,
            prepared * options.core_hour,
        ],
        f"{options.epochs} epochs of dive on {options.gpus} GPUs that share the work without loss, "
        "hours and dollars": [trained / options.gpus, trained * options.gpu_hour],
        "A month of shards and index, dollars": [stored * options.tb_month],
        "A text query that reads all codes (0.14 s a million), seconds of one core": [
            QUERY_SECONDS
        ],
    }
    print("| |", " | ".join(f"{n / 1e6:g} million pairs" for n in options.pairs), "|")
    print("|---|" + "---:|" * len(options.pairs))
    for name, values in rows.items():
        cells = (", ".join(_rounded(value * n) for value in values) for n in options.pairs)
        print(f"| {name} |", " | ".join(cells), "|")


def _rounded(value: float) -> str:
    """Two digits or more."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


if __name__ == "__main__":
    main()
