"""A model of targets given sources: padding changes nothing, any output fits, dropout is held, parts must agree."""

import math

import pytest
import torch

from elman import config
from elman.data.batches import Source
from elman.errors import UserError
from elman.network.build import build_model
from elman.network.cores.layer import HOLDING
from support import pair_networks
from support.pairwise import every_pair, every_value

SOURCES = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 1, 2], [9], [3, 3, 3, 3]]
TARGETS = [[1, 2], [3], [4, 5, 6, 7, 1], []]
CELLS = [{"kind": "lstm"}, {"kind": "gru"}, {"kind": "gru", "reset": "before"}, {"kind": "elman"},
         {"kind": "lstm", "forget_gate": False}, {"kind": "lstm", "peepholes": True}]  # fmt: skip
OUTPUTS = {
    "softmax": {},
    "tied": {"choice": {"kind": "flat", "tied": True}},
    "sigsoftmax": {"activation": "sigsoftmax"},
    "mos": {"contexts": {"kind": "mixture", "heads": {"3": 2}, "size": 8}},
    "moss": {"contexts": {"kind": "mixture", "heads": {"3": 2}, "size": 8, "prior": "same"},
             "activation": "sigsoftmax"},
    "doc": {"contexts": {"kind": "mixture", "heads": {"0": 1, "1": 1, "2": 2, "3": 2}, "size": 8},
            "choice": {"kind": "flat", "tied": True}},
    "adaptive": {"choice": {"kind": "adaptive", "cutoffs": [3, 6]}},
    "tree": {"choice": {"kind": "tree"}},
}  # fmt: skip


def log_prob(model, batch):
    return model.log_prob_given(batch.source, batch.inputs, batch.targets)


@pytest.mark.slow
@every_pair(cell=CELLS, feed=["nothing", "output", "context"], bidirectional=[True, False])
def test_padding_never_changes_a_probability(feed, cell, bidirectional):
    require_no_part_of_padding(feed=feed, cell=cell, bidirectional=bidirectional)


@pytest.mark.slow
@every_pair(score=["dot", "additive"], feed=["nothing", "output", "context"], bidirectional=[True, False])
def test_padding_never_changes_a_probability_with_any_score(feed, score, bidirectional):
    require_no_part_of_padding(feed=feed, score=score, bidirectional=bidirectional)


def require_no_part_of_padding(*, bidirectional, cell=CELLS[0], **core):
    """Alone, beside longer pairs, and with symbols in place of the padding."""
    source = {"bidirectional": bidirectional, "stack": {"sizes": [4 if bidirectional else 8] * 2, "cell": cell}}
    model = pair_networks.model(cell=cell, layers=2, source=source, **core).eval()
    batch = pair_networks.batch(SOURCES, TARGETS)
    together = log_prob(model, batch)
    symbols = torch.where(batch.source.mask, batch.source.symbols, torch.randint(10, batch.source.symbols.shape))
    other = model.log_prob_given(Source(symbols, batch.source.mask), batch.inputs, batch.targets)
    torch.testing.assert_close(other, together, rtol=0, atol=0)
    for column, (one, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = log_prob(model, pair_networks.batch([one], [target]))[:, 0]
        torch.testing.assert_close(together[: len(alone), column], alone, rtol=0, atol=2e-6)


def test_padding_gets_no_gradient():
    model = pair_networks.model(layers=2)
    batch = pair_networks.batch(SOURCES, TARGETS)
    vectors = model.reader.encoder(batch.source.symbols).detach().requires_grad_()
    model.reader.encoder = torch.nn.Identity()
    log_prob(model, batch._replace(source=Source(vectors, batch.source.mask)))[batch.mask].sum().backward()
    assert vectors.grad[~batch.source.mask].eq(0).all()
    assert vectors.grad[batch.source.mask].ne(0).any(-1).all()


@pytest.mark.slow
def test_a_held_cell_is_that_of_the_sequence_alone():
    """Both slots after the last symbol, in both directions."""
    for cell in CELLS:
        reader = pair_networks.model(cell=cell, layers=2).eval().reader
        final = reader(Source(*pair_networks.padded(SOURCES))).final
        for column, one in enumerate(SOURCES):
            for together, alone in zip(final, reader(Source(*pair_networks.padded([one]))).final, strict=True):
                for slot, its in zip(together, alone, strict=True):
                    torch.testing.assert_close(slot[column], its[0], rtol=0, atol=1e-6)


def test_a_gate_that_holds_is_exact():
    for gate, value in HOLDING.items():
        held = torch.tensor(value, requires_grad=True)
        held.sigmoid().backward()
        assert held.sigmoid().item() == {"i": 0.0, "f": 1.0}[gate]
        assert held.grad.item() == 0.0


@pytest.mark.parametrize("feed", ["nothing", "output", "context"])
def test_symbol_by_symbol_as_at_once(feed):
    model = pair_networks.model(feed=feed, layers=2).eval()
    batch = pair_networks.batch(SOURCES, TARGETS)
    at_once, state = log_prob(model, batch), model.read(batch.source)
    for t, symbols in enumerate(batch.inputs):
        log_probs, state = model.step(symbols, state)
        torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(4))
        torch.testing.assert_close(log_probs.gather(1, batch.targets[t, :, None])[:, 0], at_once[t])


@pytest.mark.slow
@every_value(name=OUTPUTS, feed=["nothing", "output"])
def test_any_output_goes_on_top(name, feed):
    """The levels are the vectors, two layers, and the attention layer; what is gathered is what is listed."""
    model = pair_networks.model(feed=feed, layers=2, output=OUTPUTS[name]).eval()
    assert model.core.dims == (8, 8, 8, 8)
    batch = pair_networks.batch(SOURCES, TARGETS)
    log_probs, _ = model.log_probs(batch.inputs, model.read(batch.source))
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(batch.inputs.shape))
    torch.testing.assert_close(log_probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1), log_prob(model, batch))


def test_the_source_matters_and_without_one_nothing_is_looked_at():
    model = pair_networks.model(feed="output").eval()
    batch = pair_networks.batch(SOURCES, TARGETS)
    exchanged = Source(*pair_networks.padded(SOURCES[::-1]))
    assert not torch.allclose(log_prob(model, batch), log_prob(model, batch._replace(source=exchanged)))
    trace, _ = model.trace(batch.inputs, model.begin(4))
    assert trace.attention.eq(0).all()
    assert trace.top.isfinite().all()


@pytest.mark.parametrize("feed", ["nothing", "output"])
def test_dropout_masks_are_held_over_time(feed):
    """Locked: a unit that is dropped is dropped at every step, the same in the loop as in the fused path."""
    stack = {"sizes": [8, 8], "between_dropout": 0.5, "output_dropout": 0.5, "weight_drop": 0.3}
    recipe = pair_networks.model_recipe(feed=feed, layers=2, stack=stack, output_dropout=0.5)
    model = build_model(recipe, 10).train()
    batch = pair_networks.batch([[1, 2, 3]] * 4, [[1, 2, 3, 4, 5]] * 4)
    trace, _ = model.trace(batch.inputs, model.read(batch.source))
    for level, raw in zip(trace.levels[1:], trace.raw[1:], strict=True):
        dropped = level.eq(0)
        assert dropped.eq(dropped[:1]).all()
        assert 0 < dropped.float().mean() < 1
        torch.testing.assert_close(level, torch.where(dropped, 0.0, raw * 2))


def test_one_vocabulary_may_have_one_matrix():
    raw = pair_networks.model_recipe()
    shared = config.Reader(stack=raw.source.stack)
    tied = config.Output(choice=config.Flat(tied=True))
    recipe = config.Model(encoder=raw.encoder, core=raw.core, source=shared, output=tied)
    model = build_model(recipe, 10)
    assert model.reader.encoder.weight is model.encoder.weight is model.output.choice.weight
    assert sum(parameter.shape == (10, 8) for parameter in model.parameters()) == 1


def test_a_bridge_lets_widths_differ():
    model = pair_networks.model(size=8, source={"stack": {"sizes": [3]}, "start": "bridge"}, layers=2)
    batch = pair_networks.batch(SOURCES, TARGETS)
    layers = model.read(batch.source)[0]
    assert [[tuple(slot.shape) for slot in layer] for layer in layers] == [[(4, 8)] * 2] * 2
    assert log_prob(model, batch).isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": {"stack": {"sizes": [3]}}}, r'model.source.start = "copy" .* \[8\] and \[6\]'),
        ({"score": "dot", "source": {"stack": {"sizes": [3]}, "start": "bridge"}}, r'score = "dot" needs .* 8 and'),
        ({"source": {"stack": {"sizes": [4], "cell": {"kind": "gru"}}}}, "are of two kinds"),
        ({"source": {"encoder": None}}, "without model.source.encoder .* different vocabularies"),
        ({"cell": {"kind": "highway"}}, r"model.source.stack.cell: .* elman, gru, or lstm"),
        ({"stack": {"sizes": [8], "connections": "graves"}}, r'model.core.stack.connections = "graves"'),
    ],
)
def test_parts_that_do_not_fit(change, message):
    with pytest.raises(UserError, match=message):
        pair_networks.model(num_source=11, **change)


def test_a_source_and_a_core_that_looks_at_it_need_each_other():
    recipe = pair_networks.model_recipe()
    window = config.FeedForward(width=2, size=8)
    with pytest.raises(UserError, match=r'model\.source .*model\.core\.kind = "attentive", or "stack"'):
        build_model(config.Model(encoder=recipe.encoder, core=window, source=recipe.source), 10)
    with pytest.raises(UserError, match=r"there is no model.source"):
        build_model(config.Model(encoder=recipe.encoder, core=recipe.core), 10)


@pytest.mark.slow
def test_seq2seq_learns_to_reverse_a_sequence():
    """Far below the log of the 11 symbols that a model without its source could do no better than."""
    model = pair_networks.model(symbols=12, size=32).train()
    sources = pair_networks.sequences(1500, 12, 5)
    batch = pair_networks.batch(sources, pair_networks.reversal(sources))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(240):
        part = batch.columns(slice(step % 23 * 64, (step % 23 + 1) * 64))
        loss = -log_prob(model, part)[part.mask].mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    model.eval()
    held = pair_networks.sequences(100, 12, 5, seed=1)
    test = pair_networks.batch(held, pair_networks.reversal(held))
    assert -log_prob(model, test)[test.mask].mean().item() < 0.1 * math.log(11)
