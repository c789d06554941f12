"""Encoders give a sample the same alone and in any batch; what they compute is what they say."""

import pytest
import torch
from same_gradients import assert_same
from torch import nn

from manymatch.batch.padding import padded_rows, padded_sequences, sequences
from manymatch.batch.vocabulary import Vocabulary
from manymatch.networks.encoders.image import (
    ImageEncoder,
    ImageSettings,
    RegionEncoder,
    ResidualEncoder,
)
from manymatch.networks.encoders.scene_graph import ConceptEncoder, EdgeContext
from manymatch.networks.encoders.text import TextSettings, text_encoder
from manymatch.networks.encoders.word_vectors import word_embedding
from manymatch.networks.pooling.set_modules import PIENet

LENGTHS = torch.tensor([4, 1, 6, 6])
MASK = torch.arange(8) < LENGTHS[:, None]
PADDING, WORDS = padded_rows(MASK), padded_sequences(LENGTHS, 8)


def everything(count, length):
    return padded_rows(torch.ones(count, length, dtype=torch.bool))


def one_sequence(length):
    return padded_sequences(length[None], int(length))


ATTENTION = {"position_size": 16, "attention_heads": 4}


def values(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("options", [{}, ATTENTION], ids=str)
def test_padding_changes_neither_training_nor_batch_statistics(options):
    features = values(4, 8, 10)
    garbage = features.masked_fill(~MASK[:, :, None], 1e3)
    torch.manual_seed(0)
    encoder = RegionEncoder(ImageSettings(encoder="regions", **options), 10, 16)
    result, with_garbage = encoder(features, PADDING), encoder(garbage, PADDING)
    torch.testing.assert_close(result, with_garbage)
    norm = encoder.widen[1]
    hidden = encoder.widen[0](features[MASK])
    expected = 0.19 * hidden.mean(0)  # two steps at momentum 0.1 from zero
    torch.testing.assert_close(norm.running_mean, expected.detach())


def vocabulary(*words):
    return Vocabulary([*Vocabulary.SPECIAL, *words])


def naive_edge_context(context, entities, labels, relations):
    """CORA's eq. 6, object by object and edge by edge."""
    rows = []
    for i, entity in enumerate(entities):
        active, passive = [], []
        for label, (subject, passive_entity) in zip(labels, relations, strict=True):
            if subject == i:
                edge = torch.cat([label, entities[passive_entity]])
                active.append(context.active.weight @ edge + context.active.bias)
            if passive_entity == i:
                edge = torch.cat([label, entity])
                passive.append(context.passive.weight @ edge + context.passive.bias)
        groups = [active, passive]
        if context.form == "code":
            groups = [[message.clamp(min=0) for message in active + passive]]
        rows.append(sum((sum(group) / len(group) for group in groups if group), entity))
    return torch.stack(rows)


def gru_step(gru, word, state):
    """Cho et al., EMNLP 2014, with the reset gate after the recurrent map, as torch has it."""
    inputs = (gru.weight_ih_l0 @ word + gru.bias_ih_l0).chunk(3)
    recurrent = (gru.weight_hh_l0 @ state + gru.bias_hh_l0).chunk(3)
    reset = (inputs[0] + recurrent[0]).sigmoid()
    update = (inputs[1] + recurrent[1]).sigmoid()
    return (1 - update) * (inputs[2] + reset * recurrent[2]).tanh() + update * state


@pytest.mark.parametrize("hidden", [5, None])
def test_a_concept_is_the_last_state_of_a_gru_or_the_mean_of_the_word_vectors(hidden):
    torch.manual_seed(0)
    words = word_embedding("learned", vocabulary("a", "b"), 7)
    encoder = ConceptEncoder(words, hidden, size=8).double()
    phrases, lengths = torch.tensor([[3, 4, 3], [4, 0, 0]]), torch.tensor([3, 1])
    expected = []
    for phrase, length in zip(phrases, lengths, strict=True):
        state = torch.zeros(5, dtype=torch.float64)
        for word in phrase[:length]:
            state = gru_step(encoder.gru.gru, words.weight[word], state) if hidden else state
        mean = sum(words.weight[word] for word in phrase[:length]) / length
        read = state if hidden else mean
        expected.append(encoder.project.weight @ read + encoder.project.bias)
    result, leaves = encoder(phrases, sequences(lengths, 3)), list(encoder.parameters())
    assert_same(result, torch.stack(expected), leaves, atol=1e-12)


@pytest.mark.parametrize("form", ["paper", "code"])
def test_edge_context_equals_the_naive_loop(form):
    torch.manual_seed(0)
    context = EdgeContext(4, form).double()
    for linear in (context.active, context.passive):
        nn.init.normal_(linear.bias)
    entities, labels = (values(5, 4, seed=seed).double().requires_grad_() for seed in (0, 1))
    relations = [(0, 1), (0, 2), (2, 0), (1, 1), (3, 1)]  # with a loop and an object without edges
    subject, object_ = torch.tensor(relations).T
    leaves = [entities, labels, *context.parameters()]
    result = context(entities, labels, subject, object_)
    expected = naive_edge_context(context, entities, labels, relations)
    assert_same(result, expected, leaves, atol=1e-12)


POOLED = {"max": torch.amax, "mean": torch.mean}
IMAGE_KINDS = pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {}) for kind in ("raw", "linear", "residual")),
        ("regions", ATTENTION),
    ],
    ids=str,
)
TEXT_KINDS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"local": "states"},
        {"directions": "concatenate"},
        {"local": "states", "pooling": "mean"},
        {"pooling": "gpo"},
    ],
    ids=str,
)


@IMAGE_KINDS
def test_an_image_alone_and_in_a_batch(kind, options):
    encoder = ImageEncoder(ImageSettings(encoder=kind, **options), feature_width=10, size=16)
    encoder(values(4, 8, 10), PADDING)  # batch statistics that are not the initial ones
    encoder.eval()
    features = values(4, 8, 10, seed=1).masked_fill(~MASK[:, :, None], 0.0)
    together = encoder(features, PADDING)
    assert together.local.shape == (4, 8, encoder.local_size)
    assert together.globals().shape == (4, 16)
    assert (together.local[~MASK] == 0).all()
    for row, length in enumerate(LENGTHS):
        alone = encoder(features[row : row + 1, :length], everything(1, length))
        torch.testing.assert_close(
            together.local[row, :length], alone.local[0], atol=1e-5, rtol=1e-5
        )
        torch.testing.assert_close(together.globals()[row], alone.globals()[0])


@TEXT_KINDS
def test_a_caption_alone_and_in_a_batch(options):
    settings = TextSettings(word_vectors="learned", word_size=6, **options)
    encoder = text_encoder(settings, vocabulary("a", "b", "c"), size=8)
    ids = torch.randint(1, 6, (4, 8), generator=torch.Generator().manual_seed(0))
    together = encoder(ids.masked_fill(~MASK, 0), WORDS)
    assert together.local.shape == (4, 8, encoder.local_size)
    for row, length in enumerate(LENGTHS):
        alone = encoder(ids[row : row + 1, :length], one_sequence(length))
        torch.testing.assert_close(together.local[row, :length], alone.local[0])
        torch.testing.assert_close(together.globals()[row], alone.globals()[0])
        if options.get("pooling") in POOLED:
            pooled = POOLED[options["pooling"]](alone.local[0], 0)
            torch.testing.assert_close(alone.globals()[0], pooled)


@pytest.mark.parametrize("local", ["vectors", "states"])
def test_dropout_of_word_vectors_and_of_gru_states_are_apart(local):
    ids, padding = torch.randint(1, 6, (40, 8)), padded_sequences(torch.full((40,), 8), 8)
    words = vocabulary("a", "b", "c")
    for key in ("dropout", "state_dropout"):
        settings = TextSettings(word_vectors="learned", word_size=64, local=local, **{key: 0.3})
        result = text_encoder(settings, words, size=64)(ids, padding)
        hit = [(part == 0).float().mean().item() for part in (result.local, result.globals())]
        of_local = (key == "dropout") == (local == "vectors")
        assert hit == pytest.approx([0.3 * of_local, 0.3 * (key == "state_dropout")], abs=0.03)


def test_a_residual_region_is_mlp_plus_itself_and_is_dropped_in_the_end():
    encoder, x = ResidualEncoder(ImageSettings(dropout=0.5), 10, 16), values(3, 8, 10)
    dropped, batch = encoder(x, everything(3, 8)), x.flatten(0, 1)
    encoder.dropout.p = 0.0
    whole, h = encoder(x, everything(3, 8)), encoder.linear(batch)
    torch.testing.assert_close(whole.flatten(0, 1), encoder.widen(h) + h)
    kept = dropped != 0
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])


def test_global_features_keep_their_precision_under_autocast():
    image = ImageEncoder(ImageSettings(encoder="raw"), feature_width=10, size=16)
    sets, residual = PIENet(10, 16, 2), ResidualEncoder(ImageSettings(), 10, 16)
    kinds = set()
    residual.widen[0].register_forward_pre_hook(lambda _, given: kinds.add(given[0].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        residual(values(4, 8, 10), PADDING)
        encoded = image(values(4, 8, 10), PADDING)
        globals_ = encoded.globals()
        predicted = sets.predict(encoded.local, encoded.padding, globals_)
        half = image.project(globals_.new_zeros(1, 10))
    kinds |= {part.dtype for part in (globals_, predicted.slots, predicted.vectors)}
    assert half.dtype == torch.bfloat16 and kinds == {torch.float32}
