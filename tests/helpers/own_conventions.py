"""Forms that other programs and people really write, each of which gives the usual table."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from own_forms import among
from PIL import Image
from tars import tar_bytes

CONVENTIONS = {}
"""Forms that give the captions of `metadata_csv`, of pictures with other names."""


def stats(folder):
    """The files that img2dataset writes beside each shard."""
    (folder / "00000_stats.json").write_text('{"count": 60, "successes": 60}')
    rows = {"url": ["http://a"], "caption": ["a bird"], "key": ["0"], "status": ["success"]}
    pq.write_table(pa.table(rows), folder / "00000.parquet")


def samples(birds):
    members = []
    for n, (file, texts) in enumerate(birds.captions.items()):
        members += [
            (f"{n:09}.jpg", (birds.photos / file).read_bytes()),
            (f"{n:09}.json", json.dumps({"caption": texts[0], "status": "success"}).encode()),
            (f"{n:09}.txt", "\n".join(texts).encode()),
        ]
    return members


@among(CONVENTIONS)
def img2dataset_files(birds):
    folder = birds.root / "out" / "00000"
    folder.mkdir(parents=True)
    for name, content in samples(birds):
        (folder / name).write_bytes(content)
    stats(folder.parent)
    return {"images": str(folder.parent)}


@among(CONVENTIONS)
def img2dataset_parquet(birds):
    """Failed addresses have a row without a picture."""
    folder = birds.root / "out"
    folder.mkdir()
    (folder / "00000_stats.json").write_text("{}")
    rows = [
        {"key": f"{n:09}", "caption": texts, "status": "success", "url": "http://a"}
        | {"jpg": (birds.photos / file).read_bytes()}
        for n, (file, texts) in enumerate(birds.captions.items())
    ]
    rows += [{"key": "1", "caption": ["x"], "status": "failed_to_download", "jpg": None}] * 30
    pq.write_table(pa.Table.from_pylist(rows), folder / "00000.parquet")
    return {"images": str(folder)}


@among(CONVENTIONS)
def tar_by_ending_of_macos(birds):
    """All pictures, then all texts."""
    members = [("./.DS_Store", b"x"), ("__MACOSX/._0.txt", b"x")]
    for name, content in sorted(samples(birds), key=lambda member: member[0][-3:] != "jpg"):
        members += [(f"./._{name}", b"\0\5\x16\7"), (f"./{name}", content)]
    folder = birds.root / "out"
    folder.mkdir()
    (folder / "00000.tar").write_bytes(tar_bytes(members))
    return {"images": str(folder)}


@among(CONVENTIONS)
def folder_of_macos(birds):
    for file, texts in birds.captions.items():
        path = birds.photos / file
        path.with_suffix(".txt").write_text("\n".join(texts))
        path.with_name(f"._{path.name}").write_bytes(b"\0\5\x16\7")
        path.with_name(f"._{path.stem}.txt").write_bytes(b"\0\xff")
    return {}


@among(CONVENTIONS)
def upper_case(birds):
    for n, (file, texts) in enumerate(birds.captions.items()):
        path = birds.photos / file
        path.with_suffix(".TXT" if n % 2 else ".txt").write_text("\n".join(texts))
        path.rename(path.with_name(f"{path.stem.upper() if n % 3 else path.stem}.JPG"))
    return {}


@among(CONVENTIONS)
def json_list(birds):
    """As BLIP and ALBEF have it."""
    rows = [
        {"image": file, "caption": texts, "image_id": f"coco_{n}"}
        for n, (file, texts) in enumerate(birds.captions.items())
    ]
    (birds.photos / "birds.json").write_text(json.dumps(rows))
    (birds.photos / "classes.json").write_text('["bird"]')
    return {}


@among(CONVENTIONS)
def stray_files(birds):
    birds.table(birds.photos / "captions.csv")
    (birds.photos / "licenses.csv").write_text("picture_id,license\n1,CC-BY\n")
    (birds.photos / "requirements.txt").write_text("pillow, numpy\n")
    (birds.photos / "LICENSE.txt").write_bytes(b"caf\xe9")
    (birds.photos / "captions_info.json").write_text('{"info": 1}')
    (birds.photos / "empty.csv").write_text("")
    (birds.photos / "pictures.tar").write_bytes(tar_bytes([("a.jpg", b"x")]))
    return {}


@among(CONVENTIONS)
def karpathy_with_an_empty_image(birds):
    """Pictures of one name in two folders, and a picture without sentences."""
    for folder in ("cats", "dogs"):
        (birds.photos / folder).mkdir()
    images = []
    for n, (file, texts) in enumerate(birds.captions.items()):
        folder, name = ("cats", "dogs")[n % 2], f"{n // 2}.jpg"
        (birds.photos / file).rename(birds.photos / folder / name)
        image = {"filepath": folder, "filename": name, "split": "train"}
        images.append(image | {"sentences": [{"raw": text} for text in texts]})
    images.append({"filename": "none.jpg", "split": "train", "sentences": []})
    (birds.photos / "dataset_birds.json").write_text(json.dumps({"images": images}))
    return {}


@among(CONVENTIONS)
def german_headings(birds):
    path = birds.table(birds.root / "bilder.csv", ";", "utf-8-sig")
    text = path.read_text("utf-8-sig").replace("file_name;caption", "Foto;Beschreibung")
    path.write_text(text, "utf-8")
    return {"captions": str(path)}


@among(CONVENTIONS)
def named_columns(birds):
    path = birds.table(birds.root / "x.csv", ";")
    path.write_text(path.read_text().replace("file_name;caption", "Nr, Ablage;Was ist da"))
    return {"captions": str(path), "file": "Nr, Ablage", "text": ["Was ist da"]}


@among(CONVENTIONS)
def absolute_paths(birds):
    rows = (row | {"file_name": str(birds.photos / row["file_name"])} for row in birds.rows)
    (birds.photos / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (birds.root / "link").symlink_to(birds.photos)
    return {"images": str(birds.root / "link")}


@among(CONVENTIONS)
def rare_endings(birds):
    captions = {}
    for n, (file, texts) in enumerate(birds.captions.items()):
        name = Path(file).with_suffix((".jfif", ".jpe", ".JPG")[n % 3]).as_posix()
        (birds.photos / file).rename(birds.photos / name)
        captions[name] = texts
    birds.captions = captions
    birds.table(birds.photos / "metadata.csv")
    return {}


@among(CONVENTIONS)
def excel_unicode_text(birds):
    birds.table(birds.photos / "captions.txt", delimiter="\t", encoding="utf-16")
    return {}


@among(CONVENTIONS)
def old_windows_table(birds):
    birds.table(birds.photos / "captions.csv", delimiter=";", encoding="cp1252")
    return {"encoding": "cp1252"}


@among(CONVENTIONS)
def modern_pictures(birds):
    birds.table(birds.photos / "captions.csv")
    path = birds.photos / "bird7.jpg"
    Image.open(path).save(path.with_suffix(".avif"))
    path.unlink()
    table = birds.photos / "captions.csv"
    table.write_text(table.read_text().replace("bird7.jpg", "bird7.avif"))
    return {}
