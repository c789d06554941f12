"""YouCook2, MSR-VTT and LSMDC in their published forms, through the two stages."""

import csv
import json
import pickle

import pytest
from made_clips import made_clips, write_annotations, write_youcook2

from manymatch.datasets.image_files import read_image_folder
from manymatch.util.errors import DataError

PICKLE, ANNOTATIONS = "youcook_val.pkl", "youcookii_annotations_trainval.json"
LSMDC_TRAIN, LSMDC_TEST = "LSMDC16_annos_training.csv", "LSMDC16_challenge_1000_publictect.csv"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


def clips_of(rows, split):
    return {row["image_id"] for row in rows if row["split"] == split}


def captions_of(rows, clip):
    return [row["caption"] for row in rows if row["image_id"] == clip]


def write_msrvtt(folder):
    """45 training videos with 2 captions each, and 4 test videos."""
    sentences = [
        {"video_id": f"video{k}", "caption": f"take {n} of {k}", "sen_id": 2 * k + n}
        for n in range(2)
        for k in range(45)
    ]
    (folder / "MSRVTT_data.json").write_text(json.dumps({"videos": [], "sentences": sentences}))
    lines = [f"video{k}" for k in range(45)]
    (folder / "MSRVTT_train.csv").write_text("\n".join(["video_id", *lines, ""]))
    rows = [[f"ret{k}", f"msr{k}", f"video{k}", f'a "big", odd {k}'] for k in range(90, 94)]
    with (folder / "MSRVTT_JSFUSION_test.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["key", "vid_key", "video_id", "sentence"], *rows])


def name(film, clip):
    return f"{film:04}_A_Film_00.00.{clip:02}.000-00.00.{clip:02}.900"


def line(film, clip, before=""):
    text = f'{before} SOMEONE "waves" in {film}.'
    return "\t".join([name(film, clip), *["00.00.01.000"] * 4, text]) + "\n"


def write_lsmdc(folder):
    """22 films of two clips each; one clip has two sentences."""
    lines = [line(film, clip) for film in range(22) for clip in (1, 2)] + [line(3, 1, " Then")]
    (folder / LSMDC_TRAIN).write_text("".join(lines))
    (folder / LSMDC_TEST).write_text(line(90, 1) + line(91, 1))


@pytest.mark.parametrize("write", [write_youcook2, write_annotations])
def test_youcook2_in_both_forms(stages_of, folder, write):
    """Whole videos validate, and features are not copied."""
    stages = stages_of("youcook2")
    write(folder, 66, 9)
    rows = stages({"folder": str(folder)})
    assert len(rows) == 75 and read_image_folder(stages.raw).absent
    assert clips_of(rows, "test") == {clip.id for clip in made_clips(9, first=198)}
    held = {f"-v_{video:03}_{step}" for video in (0, 20) for step in range(3)}
    assert clips_of(rows, "validation") == held
    first = next(row for row in rows if row["image_id"] == "-v_000_0")
    assert first["caption"] == "cut the onion" and first["caption_id"] == "-v_000_0#0"
    assert {file.suffix for file in stages.raw.iterdir()} == {".json"}


def test_msrvtt(stages_of, folder):
    write_msrvtt(folder)
    rows = stages_of("msrvtt")({"folder": str(folder)})
    assert clips_of(rows, "validation") == {"video0", "video20", "video40"}
    assert len(clips_of(rows, "train")) == 42
    assert captions_of(rows, "video91") == ['a "big", odd 91'] and len(clips_of(rows, "test")) == 4
    assert captions_of(rows, "video7") == ["take 0 of 7", "take 1 of 7"]
    table = folder / "validation.csv"
    table.write_text("video_id\nvideo3\n")
    (folder / "MSRVTT_train.csv").write_text("video_id\nvideo4\nvideo5\n")
    rows = stages_of("msrvtt")({"folder": str(folder), "validation": str(table)})
    assert clips_of(rows, "validation") == {"video3"} and len(clips_of(rows, "train")) == 2


def test_lsmdc(stages_of, folder):
    write_lsmdc(folder)
    rows = stages_of("lsmdc")({"folder": str(folder)})
    assert len(clips_of(rows, "test")) == 2 and len(rows) == 47
    assert clips_of(rows, "validation") == {name(film, clip) for film in (0, 20) for clip in (1, 2)}
    sentences = ['SOMEONE "waves" in 3.', 'Then SOMEONE "waves" in 3.']
    assert captions_of(rows, name(3, 1)) == sentences
    (folder / "LSMDC16_annos_val.csv").write_text(line(50, 1))
    settings = {"folder": str(folder), "validation": str(folder / "LSMDC16_annos_val.csv")}
    assert clips_of(stages_of("lsmdc")(settings), "validation") == {name(50, 1)}


def write_half_of_youcook2(folder):
    write_youcook2(folder, 9, 3)


def database(**video):
    return {"database": {"v": {"subset": "training", **video}}}


FAULTS = [
    ("youcook2", PICKLE, {"a": 1}, "expected a list of clips"),
    ("youcook2", PICKLE, [{"id": "a", "caption": "x"}, {"id": "b"}], "clip 1: without an id and"),
    ("youcook2", PICKLE, [print], "it would call builtins.print"),
    ("youcook2", ANNOTATIONS, "{}", f"{ANNOTATIONS}: "),
    ("youcook2", ANNOTATIONS, json.dumps(database(annotations=[{"id": 0}])), f"{ANNOTATIONS}: "),
    ("msrvtt", "MSRVTT_train.csv", "video\nvideo1\n", "no column video_id"),
    ("msrvtt", "MSRVTT_train.csv", "video_id\nvideo700\n", "no captions of 'video700'"),
    ("msrvtt", "MSRVTT_JSFUSION_test.csv", "video_id,sentence\na\n", "Expected 2 columns, got 1"),
    ("msrvtt", "MSRVTT_JSFUSION_test.csv", "video_id,sentence\nvideo1,x\n", "second caption"),
    (
        "msrvtt",
        "MSRVTT_data.json",
        '{"sentences": [{"video_id": "a", "caption": null}]}',
        "sentences[0]: expected 'caption' of type str, found None",
    ),
    ("msrvtt", "MSRVTT_data.json", "[]", "expected a JSON object"),
    ("lsmdc", LSMDC_TRAIN, line(1, 1) + "x\t1\t2\n", "csv:2: expected 6 parts separated by tabs"),
]
WRITERS = {"youcook2": write_half_of_youcook2, "msrvtt": write_msrvtt, "lsmdc": write_lsmdc}


@pytest.mark.parametrize(("dataset", "file", "content", "words"), FAULTS)
def test_a_file_of_something_else_is_one_line(stages_of, folder, dataset, file, content, words):
    if file != ANNOTATIONS:
        WRITERS[dataset](folder)
    content = pickle.dumps(content) if file == PICKLE else content.encode()
    (folder / file).write_bytes(content)
    stages_of(dataset).refused({"folder": str(folder)}, DataError, words)
