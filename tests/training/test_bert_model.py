"""A model with a BERT in it is trained from the BERT's folder and needs it never again."""

import shutil

import pytest
import torch
from small_methods import small
from tiny_bert import PIECES, make_bert
from tiny_data import COLOURS, OBJECTS, RELATIONS

from manymatch.batch.wordpieces import WordPieces
from manymatch.config.preset import Preset
from manymatch.model.checkpoint import load_model
from manymatch.model.embed import embed
from manymatch.shards.read import batches


@pytest.fixture
def bert(tmp_path):
    words = {*OBJECTS, *COLOURS, *" ".join(RELATIONS).split(), "one"} - {*PIECES}
    return make_bert(tmp_path / "bert", [*PIECES, *sorted(words)])


def preset(bert):
    bert_settings = {"concept_encoder": "bert", "bert": {"weights": str(bert), "tuning": "prefix"}}
    return Preset.model_validate(
        {
            "method": "cora",
            "features": "grid",
            "model": small("cora", bert_settings),
            "augmentation": {"word_drop": 0.2, "phrase_word_mask": 0.2, "object_drop": 0.1},
            "training": {"epochs": 1, "images_per_batch": 16, "optimizer": {"lr": 0.01}},
        }
    )


@pytest.mark.slow
def test_a_trained_model_brings_its_bert_along(bert, new_run):
    run = new_run("run")
    run.train(preset(bert))
    shutil.rmtree(bert)
    method, run_preset, vocabulary = load_model(run.model)
    assert isinstance(vocabulary, WordPieces)
    assert (run_preset, vocabulary.pretrained) == (preset(bert), None)
    stream = list(batches(run.data.shards, "test", vocabulary, 4))
    assert max(int(batch.words.max()) for batch in stream) > len(PIECES)
    result = embed(method, stream, "cpu")
    again = embed(load_model(run.model)[0], stream, "cpu")
    assert torch.equal(result.texts.vectors, again.texts.vectors)
