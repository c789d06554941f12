"""Two processes with half a batch each have the losses and gradients of one with the whole."""

import copy
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest
import torch
from forked import in_processes
from small_methods import CLIP_METHODS, NAMES
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from manymatch.batch.shared_rows import share_rows
from manymatch.methods.msrm import Hypergraph, MSRMSettings
from manymatch.methods.shared.method import Embeddings
from manymatch.networks.layers.batch_norm import share_statistics
from manymatch.shards.read import batches
from manymatch.training.data import ValidationBatches
from manymatch.training.gather import gather
from manymatch.training.validation import precision_by_score, validate


class Whole(nn.Module):
    """Encoding and the gathered loss in one forward, as data-parallel training wraps them."""

    def __init__(self, method):
        super().__init__()
        self.method = method

    def forward(self, batch):
        images, texts = self.method.encode_images(batch), self.method.encode_texts(batch)
        images, texts, image_index = gather(images, texts, batch.image_index)
        terms = self.method.loss(images, texts, replace(batch, image_index=image_index))
        return torch.stack(list(terms.values())).sum(), terms


SLOW = pytest.mark.slow
METHODS = ["swamp"] + [
    pytest.param(name, marks=SLOW) for name in NAMES if name not in ("swamp", *CLIP_METHODS)
]
STEPS, KILLED = 5, 3


@pytest.mark.parametrize("name", METHODS)
def test_two_processes_train_like_one(data, built, tmp_path, name):
    """Over five steps, of which the last two start from the saved state of the first three."""

    def trained(rank, world):
        share, history, saved = {"rank": rank, "world": world}, [], None
        words, size = data.vocabulary, 8 // world
        stream = batches(data.shards, "train", words, size, shuffle=(0, 0), **share)
        for step, batch in enumerate(islice(stream, STEPS)):
            if step in (0, KILLED):
                method = built(name, seed=step)
                for module in method.modules():
                    if isinstance(module, nn.Dropout):
                        module.eval()
                model = Whole(method)
                if world > 1:
                    model = DistributedDataParallel(
                        model, find_unused_parameters=method.reads_graphs, broadcast_buffers=False
                    )
                optimizer = torch.optim.SGD(method.parameters(), lr=0.01, momentum=0.9)
                if saved is not None:
                    method.load_state_dict(saved[0])
                    optimizer.load_state_dict(saved[1])
            torch.manual_seed(step)
            loss, terms = model(batch.to("cpu"))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(method.parameters(), 2.0)
            optimizer.step()
            saved = copy.deepcopy((method.state_dict(), optimizer.state_dict()))
            history.append({key: term.detach() for key, term in terms.items()})
        return history, method.state_dict()

    expected = trained(0, 1)
    for history, weights in in_processes(2, lambda rank: trained(rank, 2), tmp_path):
        torch.testing.assert_close(history, expected[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(weights, dict(expected[1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["cora", "dive"])
def test_processes_share_the_validation_split(name, data, built, tmp_path, monkeypatch):
    def exchange(images, texts, index):
        # A map is as long as the longest caption of the process, so processes cannot join maps.
        assert images.attention is None and texts.attention is None
        return gather(images, texts, index)

    monkeypatch.setattr("manymatch.training.validation.gather", exchange)
    method, device = built(name), torch.device("cpu")

    def split(size, *share):
        return ValidationBatches(data, size, method.read_graph, *share)

    expected = validate(method, split(3), device)
    assert expected["rsum"] > 0

    def work(rank):
        parts = split(3, rank, 2), split(16, rank, 2)
        return tuple(validate(method, part, device, rank) for part in parts)

    assert in_processes(2, work, tmp_path) == [(expected, expected), ({}, {})]


def test_validation_ranks_by_the_rule_of_retrieval(data, built):
    method, device = built("maxmatch"), torch.device("cpu")
    split = ValidationBatches(data, 3, method.read_graph)
    recalls = [validate(method.train(mode), split, device) for mode in (True, False)]
    curves = [precision_by_score(method.train(mode), data, 3, device) for mode in (True, False)]
    assert recalls[0] == recalls[1] and curves[0] == curves[1]


def embeddings(rank):
    """Two images with one caption each at rank 0; one image with three captions at rank 1."""
    images, captions, entities, k = ((2, 2, 3, 1), (1, 3, 4, 2))[rank]
    start = float(10 * rank)
    return (
        Embeddings(torch.arange(images * 2.0).reshape(images, 1, 2) + start),
        Embeddings(
            torch.full((captions, k, 2), start + 1),
            mask=torch.ones(captions, k, dtype=torch.bool),
            entities=torch.full((entities, 2), start + 2),
            entity_caption=torch.tensor([[0, 1, 1], [0, 0, 2, 2]][rank]),
        ),
        torch.tensor([[0, 1], [0, 0, 0]][rank]),
    )


def test_unequal_rows_owners_and_sets(tmp_path):
    def work(rank):
        images, texts, image_index = gather(*embeddings(rank))
        return {"images": images.vectors, **texts.parts(), "image_index": image_index}

    for result in in_processes(2, work, tmp_path):
        assert result["images"][:, 0, 0].tolist() == [0.0, 2.0, 10.0]
        assert result["image_index"].tolist() == [0, 1, 2, 2, 2]
        assert result["vectors"].shape == (5, 2, 2)
        assert result["mask"].tolist() == [[True, False]] * 2 + [[True, True]] * 3
        assert result["entity_caption"].tolist() == [0, 1, 1, 2, 2, 4, 4]
        assert result["entities"][:, 0].tolist() == [2.0] * 3 + [12.0] * 4


@pytest.mark.parametrize(("rows", "share"), [(6, 3), (5, 5)])
def test_processes_share_rows(tmp_path, rows, share):
    """If they can, also those of which others are computed; the mean of the gradients is right."""

    def outcome():
        x, seen = torch.arange(float(rows)).requires_grad_(), []

        def square(part):
            seen.append(len(part))
            return part.square()

        squares = share_rows(square, x)
        products = share_rows(lambda part: part * squares.cumsum(0).sum(), x)
        products.square().sum().backward()
        return seen, products.detach(), x.grad

    _, expected, gradient = outcome()
    results = in_processes(2, lambda rank: outcome(), tmp_path)
    for seen, products, _ in results:
        assert (seen, products.tolist()) == ([share], expected.tolist())
    assert (sum(gradient for *_, gradient in results) / 2).tolist() == gradient.tolist()


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_processes_share_the_statistics_of_batch_norms(tmp_path, shape):
    """One process with five rows and one with two: the outputs, the running statistics and the
    gradients of one with seven. DDP takes the mean of the gradients of weights."""
    torch.manual_seed(0)
    rows = 9 + torch.randn(7, 4, *shape)
    factors = torch.randn(7, 4, *shape)
    norm = (nn.BatchNorm2d if shape else nn.BatchNorm1d)(4)
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)

    def results(part, used):
        given = rows[part].clone().requires_grad_()
        output = used(given)
        (output.square() * factors[part]).sum().backward()
        weights = [parameter.grad for parameter in used.parameters()]
        return [output.detach(), given.grad], weights, list(used.buffers())

    def shared(rank):
        own = copy.deepcopy(norm)
        share_statistics(own)
        return results(slice(5) if rank == 0 else slice(5, 7), own)

    by_row, weights, buffers = results(slice(7), copy.deepcopy(norm))
    one, other = in_processes(2, shared, tmp_path)
    close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4)
    close([torch.cat(parts) for parts in zip(one[0], other[0], strict=True)], by_row)
    close([sum(parts) for parts in zip(one[1], other[1], strict=True)], weights)
    close(one[2], buffers), close(other[2], buffers)


def test_processes_share_a_hypergraph(tmp_path):
    """The mean of the gradients is that of one process, through distances that are shared too."""

    def gradients():
        torch.manual_seed(0)
        hypergraph = Hypergraph(MSRMSettings(size=6)).double()
        inputs = [torch.rand(6, 6, dtype=torch.float64, requires_grad=True) for _ in range(3)]
        queries, candidates, roots = inputs
        d2, match = share_rows(torch.square, roots), torch.eye(6, dtype=torch.bool)
        loss = hypergraph(queries, candidates, d2, match).logsumexp(1).sum()
        return torch.autograd.grad(loss, [*inputs, *hypergraph.parameters()])

    both = zip(*in_processes(2, lambda rank: gradients(), tmp_path), strict=True)
    torch.testing.assert_close([(one + other) / 2 for one, other in both], list(gradients()))
