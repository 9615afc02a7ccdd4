"""Embeddings: beside torch's and beside those that recipes build, and their dropout."""

import copy

import pytest
import torch

from elman import nn as enn
from elman.config.initialisation import Initialisation, Normal
from elman.network.encoders.characters import Characters
from elman.network.encoders.encoder import build_encoder
from elman.network.encoders.lookup import Lookup

WORDS = ["<unk>", "a", "bear", "ran", "straight", "home"]


@pytest.mark.parametrize("shape", [(), (4,), (4, 3), (2, 3, 2), (0,)])
def test_values_and_gradients_are_torchs(shape):
    ours = enn.Embedding(11, 5, scale=2.0, dtype=torch.float64)
    known = torch.nn.Embedding(11, 5, dtype=torch.float64)
    known.load_state_dict(ours.state_dict())
    x = torch.randint(11, shape)
    for ours.batch_first in (False, True):
        found, expected = ours(x), 2 * known(x)
        torch.testing.assert_close(found, expected)
        mine, theirs = (y.square().sum() for y in (found, expected))
        gradients = torch.autograd.grad(mine, ours.weight), torch.autograd.grad(theirs, known.weight)
        torch.testing.assert_close(*gradients)


def test_the_matrix_begins_by_a_rule():
    torch.manual_seed(0)
    weight = enn.Embedding(300, 40).weight
    assert weight.abs().max() <= 0.1
    assert weight.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.05)
    other = enn.Embedding(300, 40, initialisation=Initialisation(embedding=Normal(std=2.0))).weight
    assert other.std().item() == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize("batch_first", [False, True])
def test_dropout_of_words_and_of_vectors(batch_first):
    """A symbol is dropped wherever it occurs; the mask of a sequence's vectors is held over time."""
    torch.manual_seed(0)
    words = enn.Embedding(50, 8, word_dropout=0.5, batch_first=batch_first)
    x = torch.arange(50).expand(6, 50)
    found = words(x) / words.weight
    assert torch.equal(found, found[:1].expand_as(found))
    kept = found[0, :, 0]
    assert set(kept.tolist()) == {0.0, 2.0}
    assert 10 < (kept == 0).sum() < 40
    vectors = enn.Embedding(50, 64, dropout=0.5, batch_first=batch_first)
    found = vectors(x.new_zeros(4, 4)) == 0
    along = found if not batch_first else found.transpose(0, 1)
    assert torch.equal(along, along[:1].expand_as(along))
    assert not torch.equal(along[:, 0], along[:, 1])
    row = vectors(x.new_zeros(7)) == 0
    assert not torch.equal(row[0], row[1]), "positions in a row have masks of their own"
    for one in (words, vectors):
        one.eval()
        assert torch.equal(one(x), one.weight[x])


def test_one_of_a_recipe_has_the_same_values():
    for record, ours in (
        (Lookup(size=5, word_dropout=0.3, dropout=0.2), enn.Embedding(6, 5, word_dropout=0.3, dropout=0.2)),
        (
            Characters(size=3, widths=(1, 2), filters=(4, 5), dropout=0.2),
            enn.Characters(WORDS, 3, (1, 2), (4, 5), dropout=0.2),
        ),
    ):
        known = build_encoder(record, 6, WORDS, locked=True)
        torch.manual_seed(2)
        known.initialise(Initialisation())
        shared = enn.Encoder(known)
        ours.load_state_dict(known.state_dict())
        assert [*ours.state_dict()] == [*known.state_dict()]
        x = torch.randint(6, (4, 3))
        for one in (ours, shared, copy.deepcopy(ours)):
            torch.manual_seed(1)
            expected = known(x)
            torch.manual_seed(1)
            assert torch.equal(one(x), expected)
        shared.eval()
        assert not known.training
        torch.manual_seed(2)
        with torch.no_grad():
            ours.weight.zero_()
        assert not torch.equal(ours(x), expected)


def test_words_that_are_not_in_the_vocabulary_have_vectors_by_their_spelling():
    encoder = enn.Characters(WORDS, 3, (1, 2), (4, 5), dtype=torch.float64).eval()
    vectors = encoder.encode_words(["bear", "beer"])
    torch.testing.assert_close(vectors[0], encoder(torch.tensor(2)))
    assert not torch.equal(vectors[0], vectors[1])
    assert encoder.embedding_dim == 9
    output = enn.Softmax(9, len(WORDS), dtype=torch.float64)
    x = torch.tensor([[1, 2], [3, 4]])
    loss = output.nll(encoder(x), x)
    assert all(gradient.abs().sum() > 0 for gradient in torch.autograd.grad(loss, [*encoder.parameters()]))


def test_functional_calls_and_parametrised_arrays():
    embedding = enn.Embedding(11, 5)
    x = torch.randint(11, (4, 3))
    other = torch.randn(11, 5)
    assert torch.equal(torch.func.functional_call(embedding, {"weight": other}, (x,)), other[x])
    torch.nn.utils.parametrizations.weight_norm(embedding, "weight")
    with torch.no_grad():
        embedding.parametrizations.weight.original0.fill_(1.0)
    torch.testing.assert_close(embedding(x).norm(dim=-1), torch.ones(4, 3))


def test_compiled_and_exported():
    model = enn.Embedding(11, 5)
    x = torch.randint(11, (4, 3))
    torch.compiler.reset()
    assert torch.equal(torch.compile(model, fullgraph=True, backend="eager")(x), model(x))
    program = torch.export.export(model.eval(), (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    assert torch.equal(program.module()(x[:2]), model(x[:2]))
