"""Training models, and ranking with them or with others' embeddings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from manymatch.cli import project
from manymatch.cli.options import DatasetName, MethodName, Overrides, Split
from manymatch.cli.project import LAYOUT
from manymatch.config.params import model_name

commands = typer.Typer()


@commands.command()
def train(
    dataset: DatasetName,
    method: MethodName,
    overrides: Overrides = None,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Call the model NAME: --set seed=1 --as cora-1."),
    ] = None,
) -> None:
    """Train one preset: models/DATASET/METHOD. Resumes where a killed run left off."""
    from manymatch.training.torchrun import relaunch

    relaunch()
    from manymatch.training import train as stage

    preset = project.preset(dataset, method, overrides)
    method = model_name(name) if name else method
    stage.train(
        preset,
        LAYOUT.shards(dataset, preset.features),
        LAYOUT.vocabulary(dataset),
        LAYOUT.model(dataset, method),
        LAYOUT.curves(dataset, method),
        LAYOUT.checkpoints(dataset, method),
    )


@commands.command("import-howto100m")
def import_howto100m(
    file: Annotated[Path, typer.Argument(help="howto100m_pt_model.pth, as published.")],
) -> None:
    """Take over HowTo100M's model as one to start from: models/howto100m/released."""
    from manymatch.methods.howto100m import import_howto100m as stage

    stage(file, LAYOUT.model("howto100m", "released"))


@commands.command()
def evaluate(
    dataset: DatasetName,
    method: MethodName,
    split: Split = None,
) -> None:
    """Rank the test split with a trained model: reports/metrics, run files, sample queries."""
    from manymatch.evaluation import evaluate as stage

    stage.evaluate(
        *project.trained(dataset, method),
        LAYOUT.relevance(dataset),
        *project.outputs(dataset, method),
        captions=LAYOUT.captions(dataset),
        **project.ranking(split),
        elements=project.params().evaluation.elements,
    )


@commands.command()
def rerank(
    dataset: DatasetName,
    method: Annotated[
        str, typer.Argument(help="A trained CORA, or several together: cora+cora-1.")
    ],
    split: Split = None,
) -> None:
    """Evaluate a trained CORA re-ranked by entities: reports/metrics/DATASET/METHOD+rerank.json.

    Several re-rank as one: the means of their scores, of captions and of entities.
    """
    from manymatch.evaluation import rerank as stage
    from manymatch.evaluation.ensemble import JOINED_BY

    stage.rerank(
        [project.trained(dataset, name) for name in method.split(JOINED_BY)],
        LAYOUT.relevance(dataset),
        *project.outputs(dataset, method + stage.SUFFIX),
        captions=LAYOUT.captions(dataset),
        **project.ranking(split),
    )


@commands.command()
def ensemble(
    members: Annotated[
        list[str],
        typer.Argument(metavar="A B", help="Trained models: cora cora-1, or cora+cora-1."),
    ],
    dataset: Annotated[str, typer.Option(help="The dataset that they were trained on.")] = "scenes",
    split: Split = None,
) -> None:
    """Rank with the mean of several models' scores: reports/metrics/DATASET/A+B.json.

    A second seed is trained with 'manymatch train scenes cora --set seed=1 --as cora-1'.
    """
    from manymatch.evaluation import ensemble as stage

    names = [name for member in members for name in member.split(stage.JOINED_BY)]
    joined = stage.JOINED_BY.join(names)
    stage.ensemble(
        [project.trained(dataset, name) for name in names],
        LAYOUT.relevance(dataset),
        *project.outputs(dataset, joined),
        captions=LAYOUT.captions(dataset),
        **project.ranking(split),
    )


@commands.command()
def score(
    dataset: DatasetName,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Similarities, images x captions; of several files their mean."
        ),
    ] = None,
    images: Annotated[
        str | None, typer.Option(metavar="FILE", help="Image embeddings, (n, D) or (n, K, D).")
    ] = None,
    texts: Annotated[str | None, typer.Option(metavar="FILE", help="Caption embeddings.")] = None,
    similarity: Annotated[
        str, typer.Option(help="cosine, dot; of sets mil, chamfer, smooth_chamfer, max_match.")
    ] = "cosine",
    image_ids: Annotated[
        Path | None, typer.Option(help="Ids of the image rows, one a line, or .npy.")
    ] = None,
    caption_ids: Annotated[Path | None, typer.Option(help="The same of the captions.")] = None,
    captions: Annotated[
        Path | None,
        typer.Option(help="Caption table (.parquet), or .csv: image_id,caption_id[,split,labels]."),
    ] = None,
    relevance: Annotated[
        Path | None, typer.Option(help="Table of true pairs beyond the own ones (.parquet).")
    ] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="coco_1k, pmrp, eccv_caption, cxc, classes, pairs (no other); may be given twice.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Keep it: reports/metrics/DATASET/NAME.json."),
    ] = None,
) -> None:
    """Evaluate another model's embeddings or similarities by the data set's protocols.

    FILE is .npy, .npz, .safetensors, .h5 or .hdf5; with several arrays, FILE:KEY.
    Rows are in the caption table's order, or as the files of ids say. Without
    --as the metrics are printed and nothing is written. With --as the studies
    that need ranks alone are written too: reports/studies/DATASET/NAME.json. For
    captions of your own any DATASET will do, with --captions and the protocols
    you want; they are not studied.
    """
    from manymatch.evaluation.external import score as stage
    from manymatch.evaluation.external.external_scores import ExternalFiles, similarity_name
    from manymatch.experiments.studies.external import study_scores

    table = captions or LAYOUT.captions(dataset)
    if captions is None:
        relevance = relevance or LAYOUT.relevance(dataset)
    by = similarity_name(similarity)
    model_name(dataset)
    theirs = ExternalFiles(tuple(scores or ()), images, texts, by, image_ids, caption_ids)
    scored = stage.score(
        dataset,
        theirs,
        table,
        relevance,
        split=split,
        protocols=protocol or [],
        name=name or stage.SETTING,
        written=stage.Places(*project.outputs(dataset, model_name(name))) if name else None,
    )
    if name and captions is None:
        identity = {"dataset": dataset, "split": split, "preset": name, "method": stage.SETTING}
        graphs = LAYOUT.scene_graphs(dataset)
        study_scores(scored.subject, table, graphs, LAYOUT.study(dataset, name), identity)
    typer.echo(json.dumps(scored.values, indent=2))
