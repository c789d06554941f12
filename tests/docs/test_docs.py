"""The documentation is followed to the letter: files written, lines added, commands run."""

import json
import re
import tomllib

import pytest
import warm_commands
from PIL import Image

from manymatch.reporting.readme import update_pages

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ((?:src|presets)/\S+)\n")

LIBRARY = """
import pyarrow.parquet as pq, torch
from pathlib import Path
from manymatch.evaluation.embedded_model import embed_split
shards = Path("data/shards/scenes/lite0")
stored = embed_split(Path("models/scenes/cora"), shards, "test", torch.device("cpu")).embedded
files = pq.read_table("data/captions/scenes.parquet", columns=["image_id", "file"]).to_pylist()
paths = {row["image_id"]: Path("data/raw/scenes", row["file"]) for row in files}
again = model.encode_images([paths[name] for name in stored.image_ids])
torch.testing.assert_close(again.vectors, stored.images.vectors, atol=1e-6, rtol=0)
assert scores.shape == (2, 1) and len(why.entity_scores) == len(why.graph.objects)
"""
"""After the blocks of the page `library`: the embeddings are those that evaluation ranks."""


def blocks(page, language):
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def write_files(page, workspace):
    """Every block that begins with a file's name becomes that file."""
    for text in [*blocks(page, "python"), *blocks(page, "yaml")]:
        if named := FILE.match(text):
            path = workspace.folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.removeprefix(named[0]))


def register(page, workspace, registry, opening):
    """Add the page's one registry line behind `opening`."""
    (line,) = (text for text in blocks(page, "python") if not FILE.match(text))
    path = workspace.folder / registry
    source = path.read_text()
    assert source.count(opening) == 1
    path.write_text(source.replace(opening, opening + line))


def run_commands(workspace, *pages):
    commands = [line for page in pages for line in "".join(blocks(page, "sh")).splitlines()]
    return workspace.run_all(*commands)


def metrics(workspace, dataset, method):
    path = workspace.folder / "reports" / "results" / dataset / f"{method}.json"
    return json.loads(path.read_text())


@pytest.mark.slow
def test_a_method_and_a_dataset_are_added_as_the_pages_say(root, finished, new_workspace, tmp_path):
    """Both in one checkout, whose commands run in one process."""
    workspace = new_workspace().use_own_sources()
    workspace.copy_data_from(finished)
    method, dataset = (root / "docs" / f"adding-a-{what}.md" for what in ("method", "dataset"))
    write_files(method, workspace)
    write_files(dataset, workspace)
    register(dataset, workspace, "src/manymatch/datasets/__init__.py", "DATASETS = {\n")
    added = {"folder": str(pairs_folder(tmp_path))}
    named = {"datasets": ["scenes", "pairs"], "presets": ["vsepp"]}
    workspace.edit("params.yaml", {**named, "sources.pairs": added})
    run_commands(workspace, method, dataset)
    assert metrics(workspace, "scenes", "bag")["rsum"] > 0
    assert metrics(workspace, "pairs", "vsepp")["t2i"]["r10"] > 0
    assert "bag" in (workspace.folder / "reports" / "index.html").read_text()


def pairs_folder(folder):
    """What the page's dataset expects: 20 plain images with two captions each."""
    (folder / "images").mkdir()
    lines = []
    for i in range(20):
        Image.new("RGB", (40, 40), (12 * i, 0, 255 - 12 * i)).save(folder / "images" / f"{i}.png")
        split = "train" if i < 12 else "validation" if i < 16 else "test"
        lines += [f"{split}\t{i}.png\tshade number {i} {word}\n" for word in ("here", "there")]
    (folder / "captions.tsv").write_text("".join(lines))
    return folder


def test_every_link_of_the_pages_leads_somewhere(root):
    pages = [root / "README.md", *(root / "docs").glob("*.md"), *(root / "benchmarks").glob("*.md")]
    assert len(pages) >= 4
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_installation_is_one_of_an_extra_in_the_clone(root):
    """Another project may own the name `manymatch` in a package registry."""
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    files = [*root.glob("*.md"), *root.glob("docs/*.md"), root / "params.yaml"]
    files += [*root.glob("src/manymatch/**/*.py"), *root.glob("pipelines/*.py")]
    text = "\n".join(file.read_text("utf-8") for file in files)
    assert "install 'manymatch" not in text
    named = re.findall(r"'\.\[(\w+)\]'", text) + re.findall(r"\bextra\(['\"](\w+)", text)
    assert len(named) > 10 and set(named) <= set(extras)


def test_the_pages_show_the_committed_results(root, tmp_path):
    for path in ("README.md", "docs/results.md"):
        page = tmp_path / path
        page.parent.mkdir(exist_ok=True)
        page.write_text((root / path).read_text())
        update_pages([page], root / "reports")
        assert page.read_text() == (root / path).read_text(), "run 'manymatch readme'"
    drawn = [*tmp_path.rglob("*.svg")]
    assert drawn, "docs/results.md names no picture"
    for picture in drawn:
        assert (root / picture.relative_to(tmp_path)).read_text() == picture.read_text()


@pytest.mark.slow
def test_a_trained_model_is_used_as_the_pages_say(root, finished):
    """The pages `library` and `search`: the trained model in Python, an index, a search. Commands
    run in one process, programs in another."""
    page = root / "docs" / "search.md"
    outputs = run_commands(finished, page).split("> manymatch ")
    assert outputs[2].count(".jpg") == 5

    for name, colour in (("a.jpg", "red"), ("b.png", "blue")):
        Image.new("RGB", (64, 48), colour).save(finished.folder / name)
    finished.run(
        *(str(warm_commands.spawn()), "-c"),
        "import sys\nfor program in sys.argv[1:]:\n    exec(program, {})",
        "\n".join([*blocks(root / "docs" / "library.md", "python"), LIBRARY]),
        "".join(blocks(page, "python")) + "assert len(answer.results) == 5 and answer.exact",
    )
    finished.run("git", "clean", "-fdq")  # other tests use this workspace
    finished.run("git", "clean", "-fdqx", "scenes.index")
