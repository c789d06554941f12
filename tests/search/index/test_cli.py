"""The commands 'index' and 'search', and the stage `index` of DVC."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from command_line import ends, fails, printed
from workspace import stages_run

from manymatch import Index


@pytest.fixture
def run(album, monkeypatch, capfd):
    """Run a command beside the album's pictures; returns what it printed on standard output."""
    monkeypatch.chdir(album.root)

    def run(*words):
        return ends([*words], 0, monkeypatch, capfd).out

    return run


def index(album, *more):
    folder = str(album.model_folder)
    return ["index", "pictures", "--model", folder, "--to", "a.index", "--device", "cpu", *more]


def test_pictures_are_indexed_and_found(album, run, monkeypatch, capfd):
    (album.pictures / "<b>.png").write_bytes((album.pictures / "0" / "00.png").read_bytes())
    run(*index(album))
    answer = json.loads(run("search", "a.index", "two dogs", "-k", "3", "--json"))
    assert answer["query"] == "two dogs" and answer["exact"] is True
    assert {"parse", "encode", "search"} == answer["ms"].keys() and answer["reranked"] >= 3
    assert [result.keys() >= {"id", "path", "score"} for result in answer["results"]] == [True] * 3
    table = run("search", "a.index", "two dogs")
    assert all(path.name in table for path in album.pictures.rglob("*.png"))
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("search", "a.index", "--image", "pictures/0/00.png", "--open", "--where", "size > 1")
    page = Path(opened[0].removeprefix("file://")).read_text()
    assert page.count('<img alt="" src="data:image/jpeg') == 13
    assert "&lt;b&gt;.png" in page and "<b>" not in page and "http://" not in page
    Path("link").symlink_to("a.index")
    run(*index(album, "--to", "link"))
    assert Path("link").is_symlink() and not list(album.root.glob("link.*"))
    assert "no results" in run("search", "a.index", "two dogs", "--least", "9")

    for words, message in (
        (["search", "a.index"], "either"),
        (["search", "a.index", "a dog", "--image", "pictures/0/00.png"], "either"),
        (["search", "missing.index", "a dog"], "not an index"),
        (["search", "a.index", "a dog", "--where", "size >"], "filter"),
        (
            ["search", "a.index", "--image", "missing.png"],
            "missing.png: cannot be read: No such file",
        ),
        (index(album, "--split", "test"), "no splits"),
        (index(album, "--part", "3/2"), "--part"),
        (index(album, "--to", "pictures"), "not an index"),
        (index(album, "--to", "."), "not an index"),
        (index(album, "--model", "missing"), "missing: no such folder"),
        (index(album, "--model", "models/scenes/cor"), "models/scenes/cor: no such folder"),
        (index(album, "--part", "1/2", "--table", "a.csv"), "--table"),
        (["index", "pictures", "--to", "b.index"], "missing: --model MODEL. "),
        (["index", "pictures", "--model", "m"], "missing: --to FOLDER. "),
        (["index"], "missing: SOURCE, --model MODEL, --to FOLDER. "),
        (index(album, "--name", "mine"), "--name: params.yaml gives SOURCE"),
        (index(album, "--part", "1/2", "--watch"), "--watch"),
        (index(album, "--to", "new.index", "--table", "missing.csv"), "missing.csv: no such file"),
        (["search", "a.index", ""], "after 'a.index': the value is empty"),
    ):
        assert message in fails(words, monkeypatch, capfd)
    assert not list(album.root.glob("new.index*"))  # a faulty table is told before the work


def test_names_that_are_no_index_of_the_settings(album, root, monkeypatch, capfd):
    monkeypatch.chdir(album.root)
    params = yaml.safe_load((root / "params.yaml").read_text())
    params["indexes"] = {"mine": {"source": "pictures", "model": "scenes/vsepp"}}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    Path("circle").symlink_to("circle")
    Path("\udcff.txt").write_text("a dog")
    for words, message in (
        ("index --name mime", "did you mean 'mine'"),
        ("index pics --name mine", "params.yaml gives SOURCE"),
        ("index x.txt --model a --to circle", "circle"),
        ("index \udcff.txt --model flickr8k-vsepp --to c.index", "a name that is not UTF-8"),
    ):
        assert message in fails(words, monkeypatch, capfd)


@pytest.mark.slow
def test_the_stage_makes_an_index_and_joins_its_parts(finished, new_workspace, monkeypatch):
    workspace = new_workspace()
    finished.run("cp", "-r", "data", "models", "dvc.lock", str(workspace.folder))
    monkeypatch.chdir(workspace.folder)
    source, model = 'my "shards" & $(touch made); touch made', "scenes/vsepp"
    shutil.copytree("data/shards/scenes/lite0", source)
    workspace.edit("params.yaml", {"indexes": {"mine": {"source": source, "model": model}}})
    for part in ("1/2", "2/2"):
        printed("index", "--name", "mine", "--part", part)
    output = workspace.run("dvc", "repro", "--single-item", "code", "index@mine")
    assert stages_run(output) == ["code", "index@mine"] and ", 0 embedded" in output
    assert not Path("made").exists()
    assert len(Index.open("data/indexes/mine").search("two dogs").results) == 20
    assert not stages_run(workspace.run("dvc", "repro", "--single-item", "index@mine"))
    assert not list(Path("data/indexes").glob("*.partial"))
