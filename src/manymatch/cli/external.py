"""Ranking with embeddings or similarities that were made elsewhere."""

import json
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from manymatch.cli import project
from manymatch.cli.options import DatasetName, check_name, new_name
from manymatch.cli.outputs import result_files, show_result, writes
from manymatch.cli.project import LAYOUT
from manymatch.datasets import DATASETS
from manymatch.datasets.base import caption_columns
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.files import replacing
from manymatch.util.parquet_file import read_table
from manymatch.util.progress import say

commands = typer.Typer()

SplitOrTest = Annotated[str, typer.Option(callback=check_name, help="train, validation or test.")]


def _id_files(to: Path) -> list[Path]:
    return [to / "images.csv", to / "captions.csv"]


@commands.command()
@writes(_id_files)
def ids(
    dataset: DatasetName,
    to: Annotated[
        Path,
        typer.Option(metavar="FOLDER", resolve_path=True, help="Where both files are written."),
    ],
    split: SplitOrTest = "test",
) -> None:
    """Write images.csv and captions.csv: what another program embeds for `manymatch score`.

    The rows of the embeddings follow the rows of these files. examples/clip.py reads them.
    """

    from pyarrow import csv

    path = LAYOUT.captions(dataset)
    columns = caption_columns("image_id", "caption_id", "split", "caption", "file")
    rows = [row for row in read_table(path, columns).to_pylist() if row["split"] == split]
    if not rows:
        raise DataError(f"{path}: no row of the split '{split}'. Choose another split")
    raw = LAYOUT.raw(dataset)
    images = {row["image_id"]: {"file": str(raw / row["file"])} for row in rows}
    tables = (
        [{"image_id": name} | row for name, row in images.items()],
        [{key: row[key] for key in ("caption_id", "image_id", "caption")} for row in rows],
    )
    to.mkdir(parents=True, exist_ok=True)
    for file, table in zip(_id_files(to), tables, strict=True):
        with replacing(file) as partial:
            csv.write_csv(pa.Table.from_pylist(table), partial)
    say(f"{to}: {len(images):,} images, {len(rows):,} captions")


def _scored_result(dataset: str, name: str | None) -> list[Path]:
    """Without a name the command writes no file."""
    return [*result_files(dataset, name), LAYOUT.probe(dataset, name)] if name else []


@commands.command()
@writes(_scored_result)
def score(
    dataset: DatasetName,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Similarities, images x captions; several files are averaged."
        ),
    ] = None,
    images: Annotated[
        str | None, typer.Option(metavar="FILE", help="Image embeddings, (n, D) or (n, K, D).")
    ] = None,
    texts: Annotated[str | None, typer.Option(metavar="FILE", help="Caption embeddings.")] = None,
    similarity: Annotated[
        str | None,
        typer.Option(
            help="Of embeddings: cosine (the default), dot; for sets mil, chamfer, smooth_chamfer, "
            "max_match."
        ),
    ] = None,
    image_ids: Annotated[
        Path | None, typer.Option(help="Ids of the image rows, one a line, or .npy.")
    ] = None,
    caption_ids: Annotated[
        Path | None, typer.Option(help="Ids of the caption rows, one a line, or .npy.")
    ] = None,
    captions: Annotated[
        Path | None,
        typer.Option(help="Caption table (.parquet), or .csv: image_id,caption_id[,split,labels]."),
    ] = None,
    relevance: Annotated[
        Path | None,
        typer.Option(help="Table of judged true pairs besides the positives (.parquet or .csv)."),
    ] = None,
    split: SplitOrTest = "test",
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="coco_1k, pmrp, eccv_caption, cxc, classes or pairs (ranks alone); repeatable.",
        ),
    ] = None,
    name: Annotated[
        str | None, new_name("Keep the result: reports/results/DATASET/NAME.json.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all metrics as JSON instead of a table.")
    ] = False,
) -> None:
    """Evaluate another model's embeddings or similarities by the data set's protocols.

    FILE is .npy, .npz, .safetensors, .h5, .hdf5 or .pt; FILE:KEY names one of
    several arrays. --scores also takes predictions of mteb (.json). Rows follow the
    caption table, or the files of ids if they are given.
    Without --as the metrics are printed and no file is written. With --as the
    probes that need only ranks are written as well:
    reports/probes/DATASET/NAME.json. Your own captions work with any DATASET name:
    give --captions and --protocol; no probe is made of them.
    """
    from manymatch.evaluation.external import score as stage
    from manymatch.evaluation.external.score import ExternalFiles
    from manymatch.experiments.probes.all_probes import probe_scores
    from manymatch.reporting.sections.leaderboard import both_ways
    from manymatch.reporting.table import Heading
    from manymatch.reporting.terminal import show
    from manymatch.results.metrics import Metrics

    if name and LAYOUT.model(dataset, name).exists():
        raise ConfigError(f"--as: '{name}' is a trained model of {dataset}. Choose another name")
    table = captions or LAYOUT.captions(dataset)
    known = {*DATASETS}
    if captions is None:
        known |= project.params().sources.keys()
        relevance = relevance or LAYOUT.relevance(dataset)
    files = ExternalFiles(tuple(scores or ()), images, texts, similarity, image_ids, caption_ids)
    scored = stage.score(
        dataset,
        files,
        table,
        relevance,
        split=split,
        protocols=protocol or [],
        name=name or stage.SETTING,
        written=LAYOUT.result(dataset, name) if name else None,
        known=known,
    )
    if name and captions is None:
        identity = {"dataset": dataset, "split": split, "preset": name, "method": stage.SETTING}
        graphs = LAYOUT.scene_graphs(dataset)
        probe_scores(scored.ranked, table, graphs, LAYOUT.probe(dataset, name), identity)
    if as_json:
        typer.echo(json.dumps(scored.values, indent=2))
    elif name:
        show_result(dataset, name)
    else:
        metrics = Metrics.model_validate(scored.values)
        show([Heading(dataset, split), both_ways(metrics)])
