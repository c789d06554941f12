"""Bytes, hours and money for a set of pairs that is larger than this machine, from measured rates.

    python benchmarks/large_sets.py [--pairs 12.4e6 400e6] [--core-hour 0.05] [--gpu-hour 3]
        [--tb-month 23] [--cores 64] [--gpus 8] [--epochs 10]

The rates were measured, and everything else is their product with the number of pairs (an image
with one caption each). The prices are assumptions in dollars: give your own. The script prints the
table of docs/scaling.md; `COMMANDS` says where each rate is from.
"""

from __future__ import annotations

from measuring import arguments

PER_PAIR = {
    "Pictures at 224 pixels": 11_700,
    "Captions and scene graphs": 91,
    "Features `lite0`, 49 x 1,280": 126_300,
    "Shards of these": 135_400,
    "Index of sets of 4 x 256": 5_170,
    "of which codes in memory": 1_070,
}
"""Bytes."""
CORE_SECONDS = {
    "Features `lite0`": 0.0309,
    "Scene graphs": 0.00215,
    "Shards": 0.0013,
    "Loader, an epoch": 0.020 / 128,
    "Index": 0.0012,
}
"""Of processor time for a pair, on one core."""
GPU_SECONDS = {"Epoch of vsepp": 0.013 / 128, "Epoch of dive": 0.040 / 128}
"""Of one H200 for a pair, with 128 images a step."""
QUERY_SECONDS = 0.143e-6
"""Of processor time of a search for an item whose codes are read."""
COMMANDS = {
    "all bytes but the index; features, scene graphs and shards": "`time manymatch STAGE`, 1,020 "
    "photographs of Flickr8k at 224 pixels and 5,100 captions, less the time of a run with few",
    "index": "`time manymatch index` with those shards and a small DivE; `search_table.py`",
    "loader": "`loader.py`",
    "epochs": "`make gpu-check`",
    "queries": "`search_scan.py --items 1000000`",
}


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
    rows = {f"{name}, TB": [b * n / 1e12 for n in options.pairs] for name, b in PER_PAIR.items()}
    for name, seconds in CORE_SECONDS.items():
        rows[f"{name}, core hours"] = [seconds * n / 3600 for n in options.pairs]
    for name, seconds in GPU_SECONDS.items():
        rows[f"{name}, GPU hours"] = [seconds * n / 3600 for n in options.pairs]
    rows["A query that reads all codes, s"] = [QUERY_SECONDS * n for n in options.pairs]
    epoch = GPU_SECONDS["Epoch of dive"]
    prepared = sum(CORE_SECONDS.values()) - CORE_SECONDS["Loader, an epoch"]
    stored = PER_PAIR["Shards of these"] + PER_PAIR["Index of sets of 4 x 256"]
    for name, per_pair in {
        f"All stages on {options.cores} cores, hours": prepared / 3600 / options.cores,
        f"{options.epochs} epochs of dive on {options.gpus} GPUs, hours (if they share the work "
        "without loss)": options.epochs * epoch / 3600 / options.gpus,
        "All stages, $": prepared / 3600 * options.core_hour,
        f"{options.epochs} epochs of dive, $": options.epochs * epoch / 3600 * options.gpu_hour,
        "A month of shards and index, $": stored / 1e12 * options.tb_month,
    }.items():
        rows[name] = [per_pair * n for n in options.pairs]
    speed = PER_PAIR["Shards of these"] / epoch / 1e9
    print("| |", " | ".join(f"{n / 1e6:,.1f} million pairs" for n in options.pairs), "|")
    print("|---|" + "---:|" * len(options.pairs))
    for name, values in rows.items():
        print(f"| {name} |", " | ".join(_rounded(value) for value in values), "|")
    print(f"\nA GPU that trains dive reads {speed:.2f} GB of shards a second.")
    for name, command in COMMANDS.items():
        print(f"Measured, {name}: {command}")


def _rounded(value: float) -> str:
    """Two digits or more."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


if __name__ == "__main__":
    main()
