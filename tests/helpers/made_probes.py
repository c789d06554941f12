"""Made-up probes of two models, in the form in which `manymatch probe` writes them."""

from made_results import CHECKPOINT, written

GRAPH = {
    "objects": ["dog", "red ball"],
    "names": ["dog", "red ball"],
    "attributes": [["brown"], []],
    "relations": [{"subject": 0, "label": "chases", "object": 1}],
}
TURNED = GRAPH | {"relations": [{"subject": 1, "label": "chases", "object": 0}]}


def write_probes(reports, dataset, preset, thumbnails, *, entities=True):
    """The file of one model; `entities`: whether its captions have them."""
    better = 0 if entities else 3
    probes = {
        "rich_captions": _rich(better),
        "entity_retrieval": _entities(thumbnails, better),
        **({"parse_errors": _errors(), "reranking": _reranking()} if entities else {}),
    }
    record = {
        "dataset": dataset,
        "split": "test",
        "preset": preset,
        "method": preset,
        "seed": 0,
        "checkpoint_sha256": CHECKPOINT,
        "studies": probes,
    }
    return written(reports / "probes" / dataset / f"{preset}.json", record)


def _probe(title, about, tables, samples):
    return {"title": title, "about": about, "tables": tables, "samples": samples}


def _table(title, columns, *rows):
    return {"title": title, "columns": columns, "rows": list(rows)}


def _rich(better):
    columns = ["Captions", "Attributes and relations", "R@1", "R@5", "R@10", "Sum", "MedR"]
    rows = (
        ["the 100 richest", 7.25, 21.0 + better, 55.0, 70.5, 146.5 + better, 4.0],
        ["all", 2.61, 13.13 + better, 40.0, 55.37, 108.5 + better, 8.0],
    )
    samples = [
        {
            "caption_id": f"{number:06d}#0",
            "caption": f"A brown dog and {number + 2} red balls, two blue cats and a green tree, "
            "all near each other in front of a big yellow house.",
            "attributes_and_relations": 9 - number,
            "rank": 1 + number * (better + 4),
        }
        for number in range(5)
    ]
    about = "The 100 captions with most attributes and relations."
    return _probe(
        "Captions rich in semantics", about, [_table("Text to image", columns, *rows)], samples
    )


def _entities(thumbnails, better):
    columns = ["Entities", "True of an image", "R@1", "R@5", "R@10", "mAP@R", "R-P"]
    row = [1432, 6.31, 51.33 + better, 80.0, 91.67, 30.12, 41.05]
    samples = [
        {
            "image_id": f"{number:06d}",
            "thumbnail": thumbnail,
            "captions": ["There is a brown dog.", "A dog chases a red ball."],
            "entities": [
                {"entity": entity, "score": 0.6 - 0.05 * rank, "true": (rank + better) % 3 == 0}
                for rank, entity in enumerate(["brown dog", "cat", "yellow house", "red ball"])
            ],
        }
        for number, thumbnail in enumerate(thumbnails)
    ]
    return _probe("Image to entity", "All entities.", [_table("Images", columns, row)], samples)


def _errors():
    columns = ["Error", "none", "10%", "20%", "30%"]
    rsums = _table(
        "rsum",
        columns,
        ["any", 240.5, 236.25, 231.0, None],
        ["an edge moved", 240.5, 239.0, 238.5, 237.75],
    )
    counts = _table("Captions with an error", columns, ["any", 0, 150, 300, 450])
    samples = [
        {
            "error": error,
            "caption_id": "000000#1",
            "caption": "A brown dog chases a red ball.",
            "before": GRAPH,
            "after": TURNED,
        }
        for error in ("any", "an edge moved")
    ]
    return _probe("Errors of the parser", "One error.", [rsums, counts], samples)


def _reranking():
    rows = [[beta / 20, 240.0 + 10 * beta / 20 - 8 * (beta / 20) ** 2] for beta in range(21)]
    table = _table("Validation", ["beta", "rsum"], *rows)
    return _probe("Re-ranking by entities", "The best beta is 0.6.", [table], [])
