"""YouCook2, MSR-VTT and LSMDC in their published forms, through the two stages."""

import csv
import json
import pickle

import pytest
from made_clips import made_clips, write_annotations, write_youcook2

from manymatch.datasets import dataset
from manymatch.datasets.image_folder import read_image_folder
from manymatch.util.errors import ConfigError, DataError, SourceError

PICKLE, OWN = "youcook_val.pkl", "youcookii_annotations_trainval.json"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


def clips_of(rows, split):
    return {row["image_id"] for row in rows if row["split"] == split}


class TestYoucook2:
    @pytest.fixture
    def stages(self, stages_of):
        return stages_of("youcook2")

    @pytest.mark.parametrize("write", [write_youcook2, write_annotations])
    def test_both_forms_give_the_same_rows(self, stages, folder, write):
        write(folder, 66, 9)
        rows = stages({"folder": str(folder)})
        assert len(rows) == 75 and read_image_folder(stages.raw).absent
        assert clips_of(rows, "test") == {clip.id for clip in made_clips(9, first=198)}
        first = next(row for row in rows if row["image_id"] == "-v_000_0")
        assert first["caption"] == "cut the onion" and first["caption_id"] == "-v_000_0#0"

    def test_whole_videos_validate(self, stages, folder):
        write_youcook2(folder, 66, 3)
        held = clips_of(stages({"folder": str(folder)}), "validation")
        assert held == {f"-v_{video:03}_{step}" for video in (0, 20) for step in range(3)}

    def test_the_features_are_not_copied(self, stages, folder):
        write_youcook2(folder, 9, 3)
        stages({"folder": str(folder)})
        assert {file.suffix for file in stages.raw.iterdir()} == {".json"}

    def test_nothing_there_says_what_to_set(self, stages, folder):
        stages.refused({"folder": str(folder)}, ConfigError, "set annotations to youcookii")

    @pytest.mark.parametrize(
        ("name", "value", "words"),
        [
            (PICKLE, {"a": 1}, "expected a list of clips"),
            (PICKLE, [{"id": "a_1", "caption": "x"}, {"id": "a_2"}], "clip 1: without an id and"),
            (PICKLE, [{"id": 3, "caption": "x"}], "clip 0: without"),
            (PICKLE, [print], "it would call builtins.print"),
            (OWN, {}, f"{OWN}: "),
            (OWN, {"database": {"v": {"subset": "training"}}}, f"{OWN}: "),
            (
                OWN,
                {"database": {"v": {"subset": "training", "annotations": [{"id": 0}]}}},
                f"{OWN}: ",
            ),
        ],
    )
    def test_a_file_of_something_else(self, stages, folder, name, value, words):
        if name == PICKLE:
            write_youcook2(folder, 9, 3)
        content = pickle.dumps(value) if name == PICKLE else json.dumps(value).encode()
        (folder / name).write_bytes(content)
        stages.refused({"folder": str(folder)}, DataError, words)

    @pytest.mark.parametrize(
        "clips", [None, 5, ["ab"], [["v_0"]], [["v_0", "a", "b"]], [[5, "a"]], [{"a": 1, "b": 2}]]
    )
    def test_a_damaged_list_of_the_raw_folder(self, stages, folder, clips):
        write_youcook2(folder, 66, 9)
        stages({"folder": str(folder)})
        (stages.raw / "train.json").write_text(json.dumps({"clips": clips}))
        with pytest.raises(DataError, match=r"train\.json: "):
            list(dataset("youcook2").captions(stages.raw))


class TestMsrvtt:
    @pytest.fixture
    def stages(self, stages_of):
        return stages_of("msrvtt")

    @pytest.fixture
    def files(self, folder):
        """45 training videos with 2 captions each, and 4 test videos."""
        sentences = [
            {"video_id": f"video{k}", "caption": f"take {n} of {k}", "sen_id": 2 * k + n}
            for n in range(2)
            for k in range(45)
        ]
        (folder / "MSRVTT_data.json").write_text(json.dumps({"videos": [], "sentences": sentences}))
        lines = [f"video{k}" for k in range(45)]
        (folder / "MSRVTT_train.csv").write_text("\n".join(["video_id", *lines, ""]))
        with (folder / "MSRVTT_JSFUSION_test.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["key", "vid_key", "video_id", "sentence"])
            writer.writerows(
                [f"ret{k}", f"msr{k}", f"video{k}", f'a "big", odd {k}'] for k in range(90, 94)
            )
        return folder

    def test_the_published_files(self, stages, files):
        rows = stages({"folder": str(files)})
        assert clips_of(rows, "validation") == {"video0", "video20", "video40"}
        assert len(clips_of(rows, "train")) == 42
        tests = [row for row in rows if row["split"] == "test"]
        assert [row["caption"] for row in tests] == [f'a "big", odd {k}' for k in range(90, 94)]
        own = [row["caption"] for row in rows if row["image_id"] == "video7"]
        assert own == ["take 0 of 7", "take 1 of 7"]

    def test_a_list_of_videos_that_validate(self, stages, files):
        table = files / "validation.csv"
        table.write_text("video_id\nvideo3\n")
        (files / "MSRVTT_train.csv").write_text("video_id\nvideo4\nvideo5\n")
        rows = stages({"folder": str(files), "validation": str(table)})
        assert clips_of(rows, "validation") == {"video3"} and len(clips_of(rows, "train")) == 2

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("MSRVTT_train.csv", "video\nvideo1\n", "train.csv:1: no column 'video_id'"),
            ("MSRVTT_train.csv", "", "train.csv:1: no column 'video_id'"),
            ("MSRVTT_train.csv", "video_id\nvideo700\n", "no captions of 'video700'"),
            ("MSRVTT_JSFUSION_test.csv", "video_id,sentence\nvideo1\n", "test.csv:2: 1 fields"),
            ("MSRVTT_JSFUSION_test.csv", 'video_id,sentence\nv,"x" y\n', "not a line of CSV"),
            ("MSRVTT_JSFUSION_test.csv", "video_id,sentence\nvideo1,x\n", "second caption 'video1"),
            ("MSRVTT_data.json", '{"sentences": [{"caption": "a"}]}', "expected 'video_id'"),
            (
                "MSRVTT_data.json",
                '{"sentences": [{"video_id": "a", "caption": null}]}',
                "sentences[0]: expected 'caption' of type str, found None",
            ),
            ("MSRVTT_data.json", "[]", "expected a JSON object"),
        ],
    )
    def test_a_file_of_something_else(self, stages, files, name, content, words):
        (files / name).write_text(content)
        stages.refused({"folder": str(files)}, DataError, words)


class TestLsmdc:
    @pytest.fixture
    def stages(self, stages_of):
        return stages_of("lsmdc")

    @pytest.fixture
    def files(self, folder):
        """22 films of two clips each; one clip has two sentences."""
        lines = [line(film, clip) for film in range(22) for clip in (1, 2)] + [line(3, 1, " Then")]
        (folder / "LSMDC16_annos_training.csv").write_text("".join(lines))
        lines = [line(film, 1) for film in (90, 91)]
        (folder / "LSMDC16_challenge_1000_publictect.csv").write_text("".join(lines))
        return folder

    def test_the_published_files(self, stages, files):
        rows = stages({"folder": str(files)})
        assert len(clips_of(rows, "test")) == 2 and len(rows) == 47
        assert clips_of(rows, "validation") == {
            name(film, clip) for film in (0, 20) for clip in (1, 2)
        }
        message = [row["caption"] for row in rows if row["image_id"] == name(3, 1)]
        assert message == ['SOMEONE "waves" in 3.', 'Then SOMEONE "waves" in 3.']

    def test_named_clips_validate(self, stages, files):
        table = files / "LSMDC16_annos_val.csv"
        table.write_text(line(50, 1))
        rows = stages({"folder": str(files), "validation": str(table)})
        assert clips_of(rows, "validation") == {name(50, 1)}

    def test_a_line_that_is_cut(self, stages, files):
        (files / "LSMDC16_annos_training.csv").write_text(line(1, 1) + "0002_x\t1\t2\n")
        words = "train.csv:2: expected 6 parts separated by tabs, found 3"
        stages.refused({"folder": str(files)}, DataError, words)

    def test_without_files_it_tells_of_the_form(self, stages, folder):
        stages.refused({"folder": str(folder)}, ConfigError, "fill in the form")
        gone = {"train": str(folder / "none.csv"), "test": "x"}
        stages.refused(gone, SourceError, "no such file")


def name(film, clip):
    return f"{film:04}_A_Film_00.00.{clip:02}.000-00.00.{clip:02}.900"


def line(film, clip, before=""):
    text = f'{before} SOMEONE "waves" in {film}.'
    return "\t".join([name(film, clip), *["00.00.01.000"] * 4, text]) + "\n"


@pytest.mark.parametrize(
    ("name", "lost"), [("lsmdc", "train"), ("lsmdc", "test"), ("msrvtt", "train")]
)
def test_a_lost_file_of_the_raw_folder_is_a_fault(tmp_path, name, lost):
    (tmp_path / "MSRVTT_data.json").write_text('{"sentences": []}')
    for split in {"train", "test"} - {lost}:
        (tmp_path / f"{split}.csv").write_text("")
    with pytest.raises(FileNotFoundError, match=lost):
        list(dataset(name).clips(tmp_path))
