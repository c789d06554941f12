"""The zero-shot line: a two-tower model through the ordinary stages gives the ranks that a short
script with transformers gives, and the same results of a search."""

import json
import re
from collections import defaultdict

import hub_models
import hub_texts
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from command_line import printed as run
from PIL import Image
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer, CLIPImageProcessorPil

import manymatch
from manymatch.util.errors import ConfigError

PROMPT = "a photo of {}"


@pytest.fixture
def checkout(root, tmp_path, monkeypatch):
    """A folder with the committed settings, a tiny two-tower model and a preset; after the stages
    up to the shards."""

    def make(family, source):
        hub_texts.save(tmp_path / "towers", family)
        settings = yaml.safe_load((root / "params.yaml").read_text())
        settings["sources"]["scenes"] |= source
        settings["scene_graphs"]["model"] = "none"
        settings["extraction"]["zero"] = {"kind": "hf", "model": "towers", "output": "projected"}
        settings |= {"datasets": ["scenes"], "presets": ["zero"], "features": ["zero"]}
        settings |= {"experiments": {}, "warm_starts": {}, "ensembles": [], "indexes": {}}
        (tmp_path / "params.yaml").write_text(yaml.safe_dump(settings))
        preset = {"method": "pretrained", "features": "zero"}
        preset["model"] = {"model": "towers", "prompt": PROMPT}
        (tmp_path / "presets" / "scenes").mkdir(parents=True)
        (tmp_path / "presets" / "scenes" / "zero.yaml").write_text(yaml.safe_dump(preset))
        monkeypatch.chdir(tmp_path)
        run("check")
        for stage in ("download", "captions", "scene-graphs"):
            run(stage, "scenes")
        run("features", "scenes", "zero")
        run("shards", "scenes", "zero")
        return tmp_path

    return make


def script():
    """R@K by transformers alone, the scores, the pictures and the captions of the test split."""
    captions = defaultdict(list)
    for row in pq.read_table("data/captions/scenes.parquet").to_pylist():
        if row["split"] == "test":
            captions[f"data/raw/scenes/{row['file']}"].append(row["caption"])
    texts = [text for own in captions.values() for text in own]
    model, words = (
        AutoModel.from_pretrained("towers").eval(),
        AutoTokenizer.from_pretrained("towers"),
    )
    recipe = {key: value for key, value in hub_models.CROP.items() if "type" not in key}
    opened = [Image.open(path).convert("RGB") for path in captions]
    pixels = np.stack(CLIPImageProcessorPil(**recipe)(opened)["pixel_values"])
    prompts = [PROMPT.replace("{}", text) for text in texts]
    padding = True
    if model.config.model_type == "siglip":  # of a fixed length, in lower case, without a mask
        prompts, padding = [text.lower() for text in prompts], "max_length"
        words.model_input_names = ["input_ids"]
    given = words(prompts, padding=padding, truncation=True, return_tensors="pt")
    names = {"input_ids", "attention_mask"} & given.keys()
    with torch.no_grad():
        images = model.get_image_features(torch.from_numpy(pixels)).pooler_output
        vectors = model.get_text_features(**{name: given[name] for name in names}).pooler_output
    scores = normalize(images) @ normalize(vectors).T
    owner = torch.arange(len(captions)).repeat_interleave(
        torch.tensor([*map(len, captions.values())])
    )
    own = owner == torch.arange(len(images))[:, None]
    best = scores.masked_fill(~own, -9).amax(1, keepdim=True)
    ranks = {
        "i2t": (scores >= best).sum(1),
        "t2i": (scores >= scores[owner, torch.arange(len(owner))]).sum(0),
    }
    recalls = {
        way: {f"r{k}": round(100 * (rank <= k).double().mean().item(), 2) for k in (1, 5, 10)}
        for way, rank in ranks.items()
    }
    return recalls, scores, [*captions], texts


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_zero_shot_is_what_a_script_gives(family, checkout):
    folder = checkout(family, {"train": 4, "validation": 4, "test": 30})
    said = run("train", "scenes", "zero")
    assert "epoch" not in said.replace("epochs", "") and (folder / "models/scenes/zero").is_dir()
    run("evaluate", "scenes", "zero")
    metrics = json.loads((folder / "reports/results/scenes/zero.json").read_text())
    run("report")
    assert "| zero |" in (folder / "reports" / "leaderboard.md").read_text()
    recalls, scores, pictures, texts = script()
    for way, expected in recalls.items():
        assert {cut: metrics[way][cut] for cut in expected} == expected

    (folder / "towers").rename(folder / "elsewhere")  # the pictures' tower is opened by its folder
    model = manymatch.load("models/scenes/zero", image_weights="elsewhere")
    vectors = model.encode_texts(texts[:40])
    images = model.encode_images(pictures[:12], progress=False)
    torch.testing.assert_close(model.score(images, vectors), scores[:12, :40], atol=1e-6, rtol=0)
    why = model.explain(pictures[0], texts[0])
    assert why.score == pytest.approx(scores[0, 0].item(), abs=1e-6) and len(why.words) > 3
    (folder / "elsewhere").rename(folder / "towers")

    from_shards = ("index", "data/shards/scenes/zero", "--split", "test")
    run(*from_shards, "--model", "models/scenes/zero", "--to", "i")
    for number in (0, 19):
        answer = json.loads(run("search", "i", texts[number], "-k", "10", "--json"))
        got = [result["score"] for result in answer["results"]]
        best = scores[:, number].sort(descending=True).values[:10].tolist()
        assert got == pytest.approx(best, abs=1e-6)


@pytest.mark.slow
def test_features_of_another_model_are_refused(checkout):
    folder = checkout("clip", {"train": 4, "validation": 4, "test": 4})
    hub_texts.save(folder / "other", "altclip")
    path = folder / "presets/scenes/zero.yaml"
    text = path.read_text()
    for model, words in (("other", "with other weights"), ("elsewhere", "neither a folder")):
        path.write_text(re.sub("model: towers", f"model: {model}", text))
        with pytest.raises(ConfigError, match=r"extraction[.]zero in params[.]yaml"):
            run("check")
        with pytest.raises(ConfigError, match=words):
            run("train", "scenes", "zero")
        assert not (folder / "models").exists()
