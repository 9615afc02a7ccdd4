"""A decoder without attention: the last state of the reader is all it knows of the source (Sutskever et al. 2014)."""

import numpy as np
import pytest
import torch

from elman.config.inference import Beam
from elman.data.batches import Source
from elman.decoding.beam import beam_search
from elman.errors import UserError
from reference.cells import Gate, lstm
from support import pair_networks

SOURCES = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 1, 2], [9], [3, 3, 3, 3]]
TARGETS = [[1, 2], [3], [4, 5, 6, 7, 1], []]
SIZE = 8


def log_prob(model, batch):
    return model.log_prob_given(batch.source, batch.inputs, batch.targets)


def gates(layer):
    arrays = (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh)
    return [Gate(*parts) for parts in zip(*(np.split(one.detach().numpy(), 4) for one in arrays), strict=True)]


def test_the_decoder_by_its_equations():
    """h and c after the source begin the decoder; p(y_t) = softmax(W h_t + b); in NumPy, pair by pair."""
    model = pair_networks.without_attention(SIZE).double().eval()
    batch = pair_networks.batch(SOURCES, TARGETS)
    found = log_prob(model, batch).detach().numpy()
    (directions,), choice = model.reader.layers, model.output.choice
    reading, writing = gates(directions[0]), gates(model.core.layers[0])
    source_vectors, vectors, w = (one.weight.detach().numpy() for one in (model.reader.encoder, model.encoder, choice))
    for column, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        h = c = np.zeros((1, SIZE))
        for symbol in source:
            h, c = lstm(*reading, source_vectors[symbol], h, c)
        for t, (before, symbol) in enumerate(
            zip([pair_networks.EOS, *target], [*target, pair_networks.EOS], strict=True)
        ):
            h, c = lstm(*writing, vectors[before], h, c)
            logits = (h @ w.T + choice.bias.detach().numpy())[0]
            np.testing.assert_allclose(found[t, column], logits[symbol] - np.log(np.exp(logits).sum()), rtol=1e-9)


@pytest.mark.parametrize("cell", ["lstm", "gru", "elman"])
def test_padding_changes_nothing(cell):
    model = pair_networks.without_attention(SIZE, 2, {"kind": cell}).eval()
    batch = pair_networks.batch(SOURCES, TARGETS)
    together = log_prob(model, batch)
    for column, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = log_prob(model, pair_networks.batch([source], [target]))[:, 0]
        torch.testing.assert_close(together[: len(alone), column], alone, rtol=0, atol=2e-6)


def test_search_finds_the_most_probable_targets():
    """A beam as wide as the vocabulary finds the best target of two symbols at most; no position has a weight."""
    model = pair_networks.without_attention(SIZE).eval()
    beam = Beam(size=100, max_length=1, length_penalty=0.0)
    found = beam_search(model, Source(*pair_networks.padded(SOURCES)), beam, pair_networks.EOS)
    assert not model.attends
    for source, (best, *_) in zip(SOURCES, found, strict=True):
        targets = [[], *([symbol] for symbol in range(1, 10))]
        scores = [log_prob(model, pair_networks.batch([source], [target])).sum().item() for target in targets]
        assert best.symbols == targets[int(np.argmax(scores))]
        assert best.log_prob == pytest.approx(max(scores), abs=1e-5)
        assert best.attention.shape == (len(best.symbols) + 1, len(source))
        assert not best.attention.any()


def test_the_states_of_a_search_follow_its_hypotheses():
    """Each is as probable as the model says of it alone, after rows were exchanged at many steps."""
    model = pair_networks.without_attention(SIZE).eval()
    with torch.no_grad():
        model.core.layers[0].weight_hh.mul_(8)  # so that what was written before matters
    beam = Beam(size=4, nbest=4, max_length=6)
    for source, found in zip(
        SOURCES, beam_search(model, Source(*pair_networks.padded(SOURCES)), beam, pair_networks.EOS), strict=True
    ):
        assert len(found) == 4
        for one in found:
            alone = log_prob(model, pair_networks.batch([source], [one.symbols])).sum().item()
            assert one.log_prob == pytest.approx(alone, abs=1e-4)


@pytest.mark.parametrize(
    ("core", "message"),
    [
        ({"kind": "stack", "sizes": [8, 8], "connections": "graves"}, r'model.core.connections = "graves"'),
        ({"kind": "stack", "sizes": [8], "cell": {"kind": "highway"}}, r"model.core.cell: .* elman, gru, or lstm"),
        ({"kind": "stack", "sizes": [8], "cell": {"kind": "gru"}}, "are of two kinds"),
        ({"kind": "stack", "sizes": [4]}, r'model.source.start = "copy" .* \[4\] and \[8\]'),
    ],
)
def test_layers_that_cannot_continue(core, message):
    with pytest.raises(UserError, match=message):
        pair_networks.without_attention(SIZE, core=core)
