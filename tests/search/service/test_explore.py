"""The explorer's requests: its numbers are those of the metrics files and of loops over the scores,
and a judgment reaches the next evaluation."""

import csv
import io
import shutil
from pathlib import Path

import command_line
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from made_explored import (
    CAPTION_IDS,
    DATASET,
    DEPTH,
    FALSE,
    IMAGE_IDS,
    INDEX,
    TEXTS,
    TRUE,
    judgments,
    splits,
)
from scipy.stats import skew
from starlette.testclient import TestClient

from manymatch.config.layout import Layout
from manymatch.datasets.image_files import ImageFolder
from manymatch.search.explore.explorer import Explorer
from manymatch.search.service.app import application

from .conftest import ADDRESS

WAYS = ("t2i", "i2t")
METHODS = ("sets", "table")


def ask(client, path, **values):
    answer = client.get(f"/explore/{path}", params=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def naive(way, name):
    """By a loop: the ranks of the best annotated and the best true item, and the first's mark."""
    split = splits()[name]
    scores = split.score(split.embedded.images, split.embedded.texts)
    direction = getattr(split.ranking, way)
    rows = []
    for query in range(len(direction.ranks)):
        marks = []
        for item in range(len(IMAGE_IDS) if way == "t2i" else len(CAPTION_IDS)):
            image, caption = (item, query) if way == "t2i" else (query, item)
            ids = IMAGE_IDS[image], CAPTION_IDS[caption]
            known = "true" if ids == TRUE else "wrong" if ids == FALSE else "unjudged"
            marks.append("own" if INDEX[caption] == image else known)
        row = (scores.T if way == "t2i" else scores)[query].tolist()
        ranks = {}
        for kind, right in (("rank", ("own",)), ("judged", ("own", "true"))):
            best = max(score for score, mark in zip(row, marks, strict=True) if mark in right)
            before = [
                score >= best for score, mark in zip(row, marks, strict=True) if mark not in right
            ]
            ranks[kind] = sum(before) + 1
        rows.append(ranks | {"first": marks[int(direction.items[query, 0])]})
    return rows


@pytest.mark.parametrize("way", WAYS)
def test_rows_and_filters_are_those_of_a_loop(explored, way):
    expected = {name: naive(way, name) for name in METHODS}
    rows = ask(explored, "queries", way=way, size=200)["rows"]
    for name, wanted in expected.items():
        for row, one in zip(rows, wanted, strict=True):
            assert row[f"rank_{name}"] == one["rank"] and row[f"first_{name}"] == one["first"]
            assert row[f"judged_{name}"] == (one["judged"] if one["judged"] <= DEPTH else None)
    per = [1] * len(CAPTION_IDS) if way == "t2i" else np.bincount(INDEX).tolist()
    per[1] += 1  # TRUE: image 1 and caption 1
    assert [row["positives"] for row in rows] == per

    def filtered(**values):
        return [row["row"] for row in ask(explored, "queries", way=way, size=200, **values)["rows"]]

    pairs = [*zip(*expected.values(), strict=True)]
    found = filtered(right="sets", wrong="table", cut=2)
    assert found == [i for i, (a, b) in enumerate(pairs) if a["rank"] <= 2 < b["rank"]] != []
    for mark in ("own", "unjudged"):
        found = filtered(first=f"{mark}:table")
        assert found == [i for i, (_, b) in enumerate(pairs) if b["first"] == mark]
    texts = TEXTS if way == "t2i" else [" ".join(TEXTS[3 * i : 3 * i + 3]) for i in range(8)]
    assert filtered(word="A RED bird") == [
        i for i, text in enumerate(texts) if "a red bird" in text
    ]
    assert [*map(len, (filtered(word=signs) for signs in ("!", ".", "(((", " ")))] == [
        *(0, 0, 0),
        len(texts),
    ]
    for sort in ("rank_sets", "judged_table", "words", "objects", "positives", "spread"):
        up, down = filtered(sort=sort), filtered(sort=sort, descending=True)
        assert sorted(up) == sorted(down) == [*range(len(rows))] and up != down
    ranks = [expected["sets"][row]["rank"] for row in filtered(sort="rank_sets")]
    assert ranks == sorted(ranks)


def test_pages_and_files_hold_all_rows(layout, explored):
    early = ask(explored, "queries", whole=False)["rows"][0].keys()
    rows = ask(explored, "queries", export="json")
    assert early < rows[0].keys()  # the first answer need not wait for all items
    assert [row["id"] for row in rows] == CAPTION_IDS and rows[0]["text"] == TEXTS[0]
    parts = [ask(explored, "queries", page=page, size=7)["rows"] for page in range(4)]
    assert [row for part in parts for row in part] == rows
    for path in ("queries?", "unjudged?", "hubs?", "map?method=sets&"):
        answer = explored.get(f"/explore/{path}export=csv")
        assert "attachment" in answer.headers["content-disposition"]
        table = [*csv.DictReader(io.StringIO(answer.text))]
        assert len(table) == len(explored.get(f"/explore/{path}export=json").json()) > 0
    assert [row["id"] for row in table] == [*IMAGE_IDS, *CAPTION_IDS]
    assert [row["kind"] for row in table] == ["image"] * 8 + ["caption"] * 24

    explorer = Explorer(layout, DATASET)
    signs = ["=1+1", "+2 dogs", "-a", "@x", "\tx", "\uff1d1+1", "\n=1"]  # of formulas
    texts = [*signs, "-5", "+1.5", "a=b", *TEXTS[10:]]
    explorer.texts["t2i"] = pa.array(texts)
    client = TestClient(application([], explorer=explorer), ADDRESS)
    cells = [*csv.DictReader(io.StringIO(client.get("/explore/queries?export=csv").text))]
    shown = ["'" + text for text in signs] + texts[len(signs) :]
    assert [row["text"] for row in cells] == shown


def test_one_query_shows_the_ranking_and_the_rank_of_each_true_item(explored):
    found = ask(explored, "query", way="t2i", row=1, k=3)
    (sets,) = [one for one in found["methods"] if one["name"] == "sets"]
    items = splits()["sets"].ranking.t2i.items[1, :3].tolist()
    assert found["texts"] == [TEXTS[1]] and [item["row"] for item in sets["items"]] == items
    assert sets["rank"] == naive("t2i", "sets")[1]["rank"]
    assert {one["id"]: one["mark"] for one in found["positives"]} == {
        "image 0": "own",
        TRUE[0]: "true",
    }
    image = ask(explored, "query", way="i2t", row=0)
    assert image["texts"] == TEXTS[:3] and len(image["positives"]) == 3
    other = ask(explored, "query", way="i2t", row=IMAGE_IDS.index(TRUE[0]))["positives"]
    assert [one["mark"] for one in other] == ["own"] * 3 + ["true"]  # whose row is lower


def judge(client, pair, relevant, who):
    body = {"image": pair["image"], "caption": pair["caption"]}
    answer = client.post("/explore/judgments", json=body | {"relevant": relevant, "annotator": who})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_judgments_are_further_positives_and_annotators_are_compared(explored, layout):
    found = ask(explored, "unjudged", annotator="ann")
    texts = [one["text"] for one in found["rows"]]
    by_text = ask(explored, "unjudged", annotator="ann", sort="text", descending=True)["rows"]
    assert [one["text"] for one in by_text] == sorted(texts, reverse=True) != texts
    firsts = [splits()[name].ranking.t2i.items[:, 0].tolist() for name in METHODS]
    expected = {}
    for items in firsts:
        for caption, image in enumerate(items):
            ids = IMAGE_IDS[image], CAPTION_IDS[caption]
            if INDEX[caption] != image and ids not in (TRUE, FALSE):
                expected[image, caption] = expected.get((image, caption), 0) + 1
    pairs = found["rows"]
    assert {(row["image"], row["caption"]): row["methods"] for row in pairs} == expected
    assert [row["methods"] for row in pairs] == sorted(expected.values(), reverse=True)
    before = len(judgments(layout).extra)
    for pair, answer in zip(pairs[:4], (True, True, False, None), strict=True):
        about = judge(explored, pair, answer, "ann")
    assert about["annotators"] == {"ann": 4} and about["agreement"] == []
    left = ask(explored, "unjudged", annotator="ann")
    assert left["total"] == len(expected) - 4
    judged = judgments(layout)
    assert len(judged.extra) == before + 2 and len(judged.judged_false) == 2
    assert [pairs[0]["image"], pairs[0]["caption"]] in judged.extra.tolist()
    row = ask(explored, "query", row=pairs[0]["caption"])
    assert pairs[0]["image_id"] in [one["id"] for one in row["positives"]]

    second = ask(explored, "unjudged", annotator="bob", kind="second")["rows"]
    assert {row["caption"] for row in second} == {row["caption"] for row in pairs[:3]}
    new = ask(explored, "unjudged", annotator="bob")["rows"]  # a pair that ann skipped is new
    assert pairs[3]["caption"] in {row["caption"] for row in new}
    for pair, answer in zip(pairs[:3], (True, False, False), strict=True):
        about = judge(explored, pair, answer, "bob")
    (agreement,) = about["agreement"]
    # Two of three answers agree; by chance 2/3 * 1/3 + 1/3 * 2/3 = 4/9 would.
    assert agreement["kappa"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert len(judgments(layout).extra) == before + 1  # of the second pair one says yes, one no
    judge(explored, pairs[1], False, "ann")  # a changed mind replaces the former vote
    table = [*csv.DictReader(layout.votes(DATASET).open())]
    assert len(table) == 7 and all(line["time"] for line in table)
    assert ask(explored, "about")["judged"]["true"] == before + 1


def test_pictures_and_explanations(explored, layout, tmp_path):
    whole = explored.get("/explore/images/1").content
    assert whole == (layout.raw(DATASET) / "images/1.png").read_bytes()
    assert explored.get("/explore/images/1?small=true").headers["content-type"] == "image/jpeg"
    why = ask(explored, "explain", method="sets", image=1, caption=4)
    assert why["words"] and why["image_attention"]
    copy = Layout(Path(shutil.copytree(layout.root, tmp_path / "copy")))
    own = Path(shutil.move(copy.raw(DATASET) / "images", tmp_path / "photos"))
    ImageFolder(folder=str(own)).write(copy.raw(DATASET))  # the user's own folder
    client = TestClient(application([], explorer=Explorer(copy, DATASET)), ADDRESS)
    assert client.get("/explore/images/1").content == whole


def test_hubs_and_the_map(explored, layout):
    found = ask(explored, "hubs")
    items = splits()["table"].ranking.t2i.items
    counts = torch.bincount(items.flatten(), minlength=len(IMAGE_IDS))
    assert [row["tens_table"] for row in found["rows"]] == counts[
        [row["row"] for row in found["rows"]]
    ].tolist()
    (table,) = [one for one in found["methods"] if one["name"] == "table"]
    assert table["skewness"] == round(float(skew(counts.numpy())), 2)
    most = ask(explored, "hubs", sort="tens_table", descending=True)["rows"][0]
    assert most["tens_table"] == int(counts.max())
    sides = splits()["sets"].embedded.images, splits()["sets"].embedded.texts
    vectors = torch.cat([side.vectors.mean(1) for side in sides]).numpy()
    plane = ask(explored, "map", method="sets", export="json")
    assert [one["text"] for one in plane[len(IMAGE_IDS) :]] == TEXTS
    spreads = np.array([[one["x"], one["y"]] for one in plane]).var(0)
    largest = np.linalg.eigvalsh(np.cov(vectors.T, bias=True))[::-1][:2]
    assert spreads == pytest.approx(largest, rel=1e-4)


def test_the_page_is_served_alone(explored):
    assert explored.get("/").url.path == "/explore" and explored.get("/page/explore.js").text
    assert explored.get("/health").json() == {"status": "ready", "indexes": []}
    for path in ("search?q=dogs", "items/x", "explain?item=x&q=dogs"):
        assert explored.get(f"/{path}").status_code == 404


def test_the_export_is_one_table(layout, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(layout.root)
    target = tmp_path / "all.parquet"
    command_line.run(f"export --to {target}", monkeypatch)
    rows = pq.read_table(target).to_pylist()
    assert [row["id"] for row in rows] == [*IMAGE_IDS, *CAPTION_IDS]
    assert [row["rank_sets"] for row in rows[8:]] == [one["rank"] for one in naive("t2i", "sets")]
    first = splits()["table"].ranking.i2t.items[:, 0].tolist()
    assert [row["item_table"] for row in rows[:8]] == [CAPTION_IDS[row] for row in first]
    assert Path(rows[0]["image"]).is_file() and rows[8]["x_sets"] != rows[9]["x_sets"]
    assert rows[0]["x_table"] is None
    for command, words in (
        ("explore other --port 0 --no-browser", "no results to explore"),
        (f"export tiny --to {tmp_path / 'x.parquet'} --vectors table", "no trained model"),
        (f"export tiny --to {layout.params}", ".parquet"),
    ):
        assert words in command_line.fails(command, monkeypatch, capfd)
    assert sorted(tmp_path.iterdir()) == [target]
