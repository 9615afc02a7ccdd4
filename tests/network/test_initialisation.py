"""How weights begin: every rule, gate by gate, and the defaults of the papers."""

import math

import msgspec
import pytest
import torch

from elman import config
from elman.config.parts import members
from elman.network.build import build_model
from elman.network.initialisation import fill
from support import networks
from support.tree_networks import COMPOSITIONS

WORDS, SIZE = 50, 30


def model(cell=None, core=None, contexts=None, tied=False, **rules):
    recipe = config.Model(
        encoder=config.Lookup(size=SIZE),
        core=core or config.Stack(sizes=(40, SIZE), cell=cell or config.LSTM()),
        output=config.Output(contexts=contexts or config.Single(), choice=config.Flat(tied=tied)),
        initialisation=config.Initialisation(**rules),
    )
    return build_model(recipe, WORDS)


def reaches(tensor, bound):
    """Uniform in +-bound: never beyond, and well towards it."""
    return 0.6 * bound < tensor.abs().max() <= bound


def test_defaults_are_those_of_awd_lstm():
    """Embedding and decoder U(-0.1, 0.1), decoder bias 0, LSTM U(-1/sqrt(H), 1/sqrt(H)) with its biases."""
    made = model()
    assert reaches(made.encoder.weight, 0.1)
    assert reaches(made.output.choice.weight, 0.1)
    assert (made.output.choice.bias == 0).all()
    for layer in made.core.layers:
        bound = 1 / math.sqrt(layer.hidden_size)
        assert all(reaches(parameter, bound) for parameter in layer.parameters())


def test_contexts_scale_with_what_they_read():
    made = model(contexts=config.Mixture(heads={1: 3, 2: 2}, size=9))
    contexts = made.output.contexts
    for linear in (*contexts.projections.values(), contexts.prior):
        assert all(reaches(parameter, 1 / math.sqrt(linear.in_features)) for parameter in linear.parameters())


def test_biases_of_contexts_may_have_a_rule_of_their_own():
    """The published code of DOC begins them at 0, that of MoS as the weights."""
    contexts = model(contexts=config.Mixture(heads={1: 3, 2: 2}, size=9), contexts_bias=config.Zeros()).output.contexts
    assert not any(linear.bias.any() for linear in contexts.projections.values())
    for linear in (*contexts.projections.values(), contexts.prior):
        assert reaches(linear.weight, 1 / math.sqrt(linear.in_features))


@pytest.mark.parametrize("cell", [config.Elman(), config.LSTM(), config.LSTM(forget_gate=False), config.GRU()])
def test_orthogonal_for_each_gate(cell):
    for layer in model(cell, hidden=config.Orthogonal(gain=1.5)).core.layers:
        gates, eye = layer.weight_hh.split(layer.hidden_size), torch.eye(layer.hidden_size)
        for gate in gates:
            torch.testing.assert_close(gate @ gate.t(), 2.25 * eye, atol=1e-5, rtol=0)
        assert len(gates) == 1 or not torch.allclose(gates[0], gates[1])


@pytest.mark.parametrize("cell", [config.Elman(nonlinearity="relu"), config.GRU()])
def test_identity_initialisation_is_that_of_each_gate(cell):
    """Le, Jaitly & Hinton 2015."""
    for layer in model(cell, hidden=config.Identity(gain=0.5), bias=config.Zeros()).core.layers:
        for gate in layer.weight_hh.split(layer.hidden_size):
            assert torch.equal(gate, 0.5 * torch.eye(layer.hidden_size))
        assert not layer.bias_ih.any()
        assert not layer.bias_hh.any()


@pytest.mark.parametrize("biases", [0, 1, 2])
def test_forget_bias_is_the_sum_of_the_biases_of_one_gate(biases):
    core = config.Stack(sizes=(SIZE,), biases=biases)
    (layer,) = model(core=core, forget_bias=1.0).core.layers
    given = [bias.split(SIZE) for bias in (layer.bias_ih, layer.bias_hh) if bias is not None]
    assert len(given) == biases
    if given:
        i, f, g, o = (sum(parts) for parts in zip(*given, strict=True))
        assert torch.equal(f, torch.ones(SIZE))
        assert all(gate.std() > 0 for gate in (i, g, o))


@pytest.mark.parametrize("biases", [1, 2])
@pytest.mark.parametrize(
    ("cell", "blocks", "value"),
    [
        (config.LSTM(input_gate="coupled"), (0,), 2.0),
        (config.LSTM(input_gate="capped"), (1,), 2.0),
        (config.LSTMVariant(variant="cifg"), (0,), 2.0),
        (config.LSTMVariant(variant="fgr"), (1,), 2.0),
        (config.MUT(number=3), (1,), -2.0),
        (config.Ladder(rung="forget"), (0,), 2.0),
        (config.Ladder(rung="input"), (1,), 2.0),
        (config.Mogrifier(), (1,), 2.0),
        (config.Highway(depth=3), (1, 3, 5), -2.0),
        (config.Highway(depth=2, coupled=False), (2, 5), 2.0),
        (config.SRU(), (1,), 2.0),
        (config.QRNN(), (1,), 2.0),
        (config.MinGRU(), (0,), -2.0),
        (config.MinLSTM(), (0,), 2.0),
        (config.MinimalGated(), (0,), -2.0),
    ],
)
def test_forget_bias_is_of_the_gate_that_keeps_the_old_state(cell, blocks, value, biases):
    """Shut transform gates keep, which is Zilly's bias of -2."""
    core = config.Stack(sizes=(SIZE,), cell=cell, biases=biases)
    (layer,) = model(core=core, forget_bias=2.0, bias=config.Zeros()).core.layers
    total = torch.zeros(len(layer.weight_ih if getattr(layer, "weight_hh", None) is None else layer.weight_hh))
    for bias in (layer.bias_ih, layer.bias_hh):
        if bias is not None:
            total[: len(bias)] += bias
    for block, gate in enumerate(total.split(SIZE)):
        assert torch.equal(gate, torch.full((SIZE,), value if block in blocks else 0.0))


def test_forget_bias_needs_a_forget_gate():
    for cell in (config.LSTM(forget_gate=False), config.GRU(), config.Elman()):
        for layer in model(cell, forget_bias=1.0, bias=config.Zeros()).core.layers:
            assert not layer.bias_ih.any()


@pytest.mark.parametrize(
    ("rule", "std"),
    [
        (config.Normal(), 1 / math.sqrt(400)),
        (config.Normal(std=0.3), 0.3),
        (config.Uniform(), 1 / math.sqrt(3 * 400)),
        (config.Uniform(bound=0.05), 0.05 / math.sqrt(3)),
        (config.Glorot(), math.sqrt(2 / (300 + 400))),
        (config.He(), math.sqrt(2 / 400)),
        (config.Orthogonal(), 1 / math.sqrt(400)),
        (config.Zeros(), 0.0),
    ],
)
def test_the_spread_of_every_rule(rule, std):
    """Of a matrix of 300 rows and 400 columns."""
    tensor = torch.full((300, 400), 7.0)
    fill(tensor, rule, 400)
    assert tensor.mean().abs() < 0.02 * std + 1e-9
    assert tensor.std().item() == pytest.approx(std, rel=0.02)


@pytest.mark.parametrize("rule", [config.Glorot(), config.He(), config.Orthogonal(), config.Identity()])
def test_rules_for_matrices_leave_vectors_at_zero(rule):
    vector = torch.ones(5)
    fill(vector, rule, 5)
    assert not vector.any()


def test_tied_weights_follow_the_embedding():
    made = model(tied=True, embedding=config.Uniform(bound=0.01), output=config.Uniform(bound=5.0))
    assert made.output.choice.weight is made.encoder.weight
    assert reaches(made.encoder.weight, 0.01)


def test_a_window_model_is_initialised():
    made = model(core=config.FeedForward(width=3, size=SIZE), input=config.Uniform())
    assert reaches(made.core.hidden.weight, 1 / math.sqrt(3 * SIZE))
    assert not made.core.hidden.bias.any()


def test_the_network_of_le_jaitly_and_hinton():
    """IRNN: ReLU units that begin by copying themselves; without input nothing changes, without end."""
    made = model(config.Elman(nonlinearity="relu"), hidden=config.Identity(), bias=config.Zeros())
    (_, layer) = made.core.layers
    h = torch.rand(2, SIZE)
    torch.testing.assert_close(layer(torch.zeros(50, 2, 40), (h,))[0][-1], h)


CORES = [
    config.Stack(sizes=(40, SIZE)),
    config.FeedForward(width=3, size=SIZE),
    config.Stack(sizes=(40, SIZE), cell=config.Mogrifier(rank=3)),
    config.Stack(sizes=(40, SIZE), cell=config.Highway()),
    config.Stack(sizes=(40, SIZE), connections="graves"),
    config.Jordan(size=SIZE),
    config.Jordan(size=SIZE, feedback="target"),
]


@pytest.mark.parametrize("core", CORES)
def test_nothing_is_left_unfilled_and_the_seed_decides(core):
    mixture = config.Mixture(heads={0: 1, 1: 2}, size=SIZE)

    def made(seed):
        torch.manual_seed(seed)
        return model(core=core, contexts=mixture).state_dict()

    one, again, other = made(1), made(1), made(2)
    assert all(torch.isfinite(value).all() and value.abs().max() < 1 for value in one.values())
    assert all(torch.equal(one[name], again[name]) for name in one)
    constant = {name for name in one if torch.equal(one[name], other[name])}
    assert constant <= {"output.choice.bias", "core.hidden.bias"}


EACH = config.Uniform()
RULES = config.Initialisation(embedding=EACH, input=EACH, hidden=EACH, bias=EACH, output=EACH)
"""All of them scale with a width, which has to be the right one."""


def parts():
    """A network with every cell, core, way to read, and way to choose, small."""
    lookup, stack = config.Lookup(size=4), config.Stack(sizes=(6, 4))
    for name, cell in networks.CELL_RECORDS.items():
        yield f"cell {name}", config.Model(encoder=lookup, core=config.Stack(sizes=(8,), cell=cell)), {}
    for kind in members(config.Core).values():
        if kind not in (config.Attentive, config.Recursive, config.Sentence):
            record = config.Reservoir(size=30) if kind is config.Reservoir else networks.example(kind)
            yield f"core {networks.tag(kind)}", config.Model(encoder=lookup, core=record), {}
    for name, choice in networks.CHOICES.items():
        output = config.Output(contexts=networks.CONTEXTS["doc"], choice=choice)
        yield f"choice {name}", config.Model(encoder=lookup, core=stack, output=output), {"counts": networks.COUNTS}
    for kind in (config.Bernoulli, config.NADE):
        output = config.Output(choice=networks.example(kind))
        yield f"choice {networks.tag(kind)}", config.Model(encoder=config.Frames(size=4), core=stack, output=output), {}
    for name, record in COMPOSITIONS.items():
        core = config.Recursive(size=5, composition=record, parser=True, leaves=config.Stack(sizes=(6,)))
        yield f"composition {name}", config.Model(encoder=lookup, core=core), {"num_labels": 3}
    characters = config.Characters(size=3, widths=(1, 2), filters=(2, 3), highways=2)
    yield "characters", config.Model(encoder=characters, core=stack), {"words": tuple("abcdefghijklm")}


def begun(recipe, given):
    """A number that depends on every weight of a new network, and on its place."""
    torch.manual_seed(5)
    recipe = msgspec.structs.replace(recipe, initialisation=RULES)
    made = build_model(recipe, len(networks.COUNTS), **given).state_dict()
    each = [(made[name].double().flatten() * torch.arange(made[name].numel()).cos()).sum() for name in sorted(made)]
    return sum(at * one.item() for at, one in enumerate(each, start=1))


BEGUN = {
    "cell lstm-nig": -7.0706,
    "cell lstm-nfg": -7.0706,
    "cell lstm-nog": -7.0706,
    "cell lstm-niaf": -7.0454,
    "cell lstm-noaf": -7.0454,
    "cell lstm-cifg": -7.0706,
    "cell lstm-fgr": -15.2309,
    "cell chaos-free": -25.9807,
    "cell mut1": -10.6718,
    "cell mut2": -17.1269,
    "cell mut3": -2.0161,
    "cell elman-tanh": -6.6788,
    "cell elman-sigmoid": -6.6788,
    "cell elman-relu": -6.6788,
    "cell elman-softplus": -6.6788,
    "cell continuous": -6.6788,
    "cell continuous-learned": -8.4418,
    "cell lstm": -1.6100,
    "cell lstm-1997": -2.0161,
    "cell lstm-peephole": -7.0454,
    "cell gru-before": -2.0161,
    "cell gru-after": -2.0161,
    "cell lstm-coupled": -2.0161,
    "cell lstm-capped": -1.6100,
    "cell rung-forget": -10.5370,
    "cell rung-input": -2.0161,
    "cell highway-1": -10.5370,
    "cell highway-3": -14.5943,
    "cell highway-2-carry": -16.2040,
    "cell qrnn-1": 4.2556,
    "cell qrnn-2": 2.4531,
    "cell sru": -19.6384,
    "cell lru": -16.7715,
    "cell lru-3": -26.3754,
    "cell rg-lru": -25.1517,
    "cell slstm": -24.5355,
    "cell slstm-exponential": -1.6100,
    "cell mlstm": -1.0145,
    "cell mlstm-without-norm": 10.1487,
    "cell mlstm-convolution": -19.9298,
    "cell mamba2": -74.4620,
    "cell deltanet": -47.4277,
    "cell deltanet-negative": -3.7908,
    "cell rwkv7": -21.9682,
    "cell local-attention": -3.7295,
    "cell attention-to-two": -3.7295,
    "cell mogrifier-5": -33.4855,
    "cell mogrifier-4-low-rank": -80.8150,
    "cell min-gru": -15.6864,
    "cell min-lstm": 4.2556,
    "cell minimal-gated": -10.5370,
    "cell unitary": 10.5659,
    "core jordan": -23.1674,
    "core ntm": 12.6008,
    "core reservoir": 5.4582,
    "core residual": -59.5033,
    "core stack": -32.3907,
    "core window": 10.3511,
    "choice flat": -22.5713,
    "choice adaptive": -37.1820,
    "choice adaptive-tied": -64.6880,
    "choice adaptive-bias": -98.5473,
    "choice tree": -264.7113,
    "choice tree-random-tied": 53.7622,
    "choice rare-class": -27.3545,
    "choice rare-class-none": -24.4060,
    "choice monotone": -12.8007,
    "choice monotone-tied": -69.0180,
    "choice mixtape": -77.0334,
    "choice mixtape-8-tied": -29.3240,
    "choice mixtape-2-wide": -76.6088,
    "choice bernoulli": -5.8708,
    "choice nade": -55.1875,
    "composition affine": -21.0989,
    "composition matrix-vector": -9.3064,
    "composition binary-lstm": -35.2302,
    "composition child-sum-lstm": -31.5354,
    "characters": -129.5644,
}


@pytest.mark.parametrize("name", BEGUN)
def test_a_seed_begins_every_part_with_the_weights_it_always_began_with(name):
    """Their rules, their bounds and the order in which they are drawn."""
    recipe, given = {name: made for name, *made in parts()}[name]
    assert begun(recipe, given) == pytest.approx(BEGUN[name], abs=2e-3)


def test_every_part_is_among_them():
    assert {name for name, *_ in parts()} == set(BEGUN)
