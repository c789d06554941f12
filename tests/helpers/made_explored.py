"""A project with the results of two methods on a made-up data set, as `manymatch evaluate` writes
them."""

import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import yaml
from complete_results import EVIL
from made_scores import consecutive_index, ranked_split

from manymatch.config.layout import Layout
from manymatch.datasets.base import CAPTIONS, JUDGED
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.protocols.relevance import read_judgments
from manymatch.evaluation.ranking.ranks import rank
from manymatch.evaluation.split_results import SplitResults, pair_metrics, write
from manymatch.evaluation.votes import majority, read_votes
from manymatch.methods.shared.embeddings import Embeddings

DATASET, IMAGES, PER_IMAGE, DEPTH = "tiny", 8, 3, 6
INDEX = consecutive_index(IMAGES, PER_IMAGE)
IMAGE_IDS = [f"image {row}" for row in range(IMAGES)]
CAPTION_IDS = [f"image {row // PER_IMAGE}#{row % PER_IMAGE}" for row in range(IMAGES * PER_IMAGE)]
TEXTS = [EVIL if row == 0 else f"Two dogs, {'a red' if row % 2 else 'one'} bird {row}"
         for row in range(len(CAPTION_IDS))]  # fmt: skip
TRUE, FALSE = ("image 1", "image 0#1"), ("image 2", "image 0#2")


def make_explored(root, pictures):
    """Captions, judged pairs, pictures, and results of the methods `sets` and `table` in `root`;
    scores of `table` are tied."""
    layout = Layout(root)
    (layout.raw(DATASET) / "images").mkdir(parents=True)
    layout.captions(DATASET).parent.mkdir()
    layout.scene_graphs(DATASET).parent.mkdir()
    for number in range(IMAGES):
        shutil.copy(pictures[number % len(pictures)], layout.raw(DATASET) / f"images/{number}.png")
    rows = [
        {"image_id": caption.partition("#")[0], "caption_id": caption, "split": "test"}
        | {"caption": text, "file": f"images/{row // PER_IMAGE}.png", "labels": []}
        for row, (caption, text) in enumerate(zip(CAPTION_IDS, TEXTS, strict=True))
    ]
    other = rows[0] | {"caption_id": "other#0", "split": "train"}
    pq.write_table(pa.Table.from_pylist([other, *rows], CAPTIONS), layout.captions(DATASET))
    graphs = [
        {"caption_id": name, "objects": ["x"] * (1 + row % 4)}
        for row, name in enumerate(CAPTION_IDS)
    ]
    pq.write_table(pa.Table.from_pylist(graphs), layout.scene_graphs(DATASET))
    judged = [(*TRUE, True), (*FALSE, False), ("image 9", "image 9#0", True)]
    named = [dict(zip(JUDGED.names, row, strict=True)) for row in judged]
    pq.write_table(pa.Table.from_pylist(named, JUDGED), layout.relevance(DATASET))
    evaluate(layout)
    lists = {"datasets": [DATASET], "presets": [], "features": [], "sources": {}, "extraction": {}}
    layout.params.write_text(yaml.safe_dump(lists))
    return layout


def judgments(layout):
    """What an evaluation counts as judged."""
    ids = IMAGE_IDS, CAPTION_IDS, INDEX
    voted = majority(read_votes(layout.votes(DATASET)))
    return read_judgments(layout.relevance(DATASET), *ids, voted)


def splits():
    """The ranked split of each method."""
    torch.manual_seed(0)
    table = torch.randint(0, 12, (IMAGES, len(CAPTION_IDS))).float()
    ids = {"image_ids": IMAGE_IDS, "caption_ids": CAPTION_IDS}
    tied = ranked_split(table, INDEX, depth=DEPTH, **ids)
    vectors = [Embeddings(torch.randn(count, 2, 4)) for count in table.shape]

    def score(images, texts):
        return torch.einsum("ikd,tld->it", images.vectors, texts.vectors)

    embedded = replace(tied.embedded, images=vectors[0], texts=vectors[1])
    sets = RankedSplit(embedded, score, None, rank(score, *embedded.gallery, DEPTH))
    return {"sets": sets, "table": tied}


def evaluate(layout):
    """Write the results of both methods."""
    for name, split in splits().items():
        judged = judgments(layout)
        values = pair_metrics(split, judged)
        origin = {"dataset": DATASET, "preset": name, "method": "maxmatch", "split": "test"}
        rest = {"seed": 0, "features": "lite0", "setting": "small-scale"}
        results = SplitResults(split, values, {}, judged)
        write(layout.result(DATASET, name), results, name, origin | rest)
