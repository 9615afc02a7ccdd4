"""What every output, context, encoder, core and composition must fulfil.

Each is built from its record alone, in float64, with random weights where `initialise` has filled it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elman import config
from elman.config.initialisation import Initialisation
from elman.network.cores.core import RecurrentCore, Trace, build_core
from elman.network.encoders.encoder import TokenEncoder, build_encoder
from elman.network.encoders.lookup import Lookup
from elman.network.output.choice import Choice, Conditional, Drawn, Surroundings
from elman.network.output.contexts import ContextLayer
from elman.network.state import leaves, map_state
from elman.network.trees.composition import Composition, NodeState

STEPS, ROWS, SIZE = 6, 3, 4
COUNTS = (40, 31, 17, 9, 9, 7, 5, 4, 3, 2, 1, 1, 0)
"""How often each word was seen, where an output asks."""


def made(build: Callable[[], Any], kind: type, seed: int) -> Any:
    """A module in float64 with random weights, after its initialisation has been checked."""
    first, second = _initialised(build, kind, seed), _initialised(build, kind, seed)
    for (name, ours), (_, theirs) in zip(first.named_parameters(), second.named_parameters(), strict=True):
        assert torch.equal(ours, theirs), f"the same random state initialises {name} in the same way"
        assert bool(torch.isfinite(ours).all()), f"`initialise` fills {name}"
    with torch.device("meta"):
        shapes = {name: one.shape for name, one in build().named_parameters()}
    assert shapes == {name: one.shape for name, one in first.named_parameters()}, "it can be built on the device meta"
    with torch.no_grad():
        for parameter in first.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter), alpha=0.4)
    return first.double().eval()


def _initialised(build: Callable[[], Any], kind: type, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    module = build()
    assert isinstance(module, nn.Module), f"`build` makes a {kind.__name__}"
    assert isinstance(module, kind), f"`build` makes a {kind.__name__}"
    torch.manual_seed(seed)
    module.initialise(Initialisation())  # type: ignore[operator]  # of an abstract class's subclass
    return module


def unchanged(call: Callable[..., Any], *arguments: Tensor) -> Any:
    """What a call returns; it must not change its arguments."""
    before = [one.clone() for one in arguments]
    result = call(*arguments)
    assert all(map(torch.equal, before, arguments)), "arguments must not be changed"
    return result


def same(ours: Iterable[Tensor], theirs: Iterable[Tensor], rule: str) -> None:
    """Raise AssertionError with the rule where tensors differ by more than rounding."""
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, msg=lambda told: f"{rule}: {told}")


def differentiable(call: Callable[..., Any], *arguments: Tensor) -> None:
    """Compare gradients of a call with finite differences."""
    given = tuple(one.detach().clone().requires_grad_() for one in arguments)
    assert torch.autograd.gradcheck(call, given, check_undefined_grad=False), "gradients are those of the values"


def check_output(
    record: config.Choice,
    *,
    size: int = SIZE,
    activation: str = "softmax",
    counts: Sequence[int] = COUNTS,
    seed: int = 0,
) -> None:
    """An output: probabilities add up to one, its methods agree, gradients, positions apart, draws as probable.

    Symbols are as many as the counts; notes are 3; of real values there is one, over which the density is integrated.
    """

    def build(number: int) -> Conditional:
        encoder = build_encoder(Lookup(size=size), number, locked=True)
        choice: Conditional = record.build(Surroundings(size, number, activation, encoder, counts[:number]))
        return choice

    torch.manual_seed(seed)
    kind = getattr(build(len(counts)), "predicts", None)
    assert kind is not None, "`build` makes a Conditional"
    assert kind in ("symbols", "notes", "values"), "`predicts` is symbols, notes or values"
    number = {"symbols": len(counts), "notes": 3, "values": 1}[kind]
    choice: Conditional = made(lambda: build(number), Conditional, seed)
    context = torch.randn(5, 2, size, dtype=torch.float64)
    outcomes, width = _outcomes(kind, number)
    many = len(outcomes)
    every = torch.stack([choice.log_prob(one.repeat(many, 1, 1), outcomes).T for one in context])
    assert every.shape == (5, 2, len(outcomes)), "log_prob is [N, K]"
    assert bool(torch.isfinite(every).all()), "no probability is zero"
    total = every.logsumexp(-1) + math.log(width)
    near = 1e-3 if kind == "values" else 1e-9
    assert bool((total.abs() < near).all()), f"probabilities add up to one, not to {total.exp().flatten()[0]:.6g}"
    target = outcomes[torch.randint(len(outcomes), (5,))]
    log_prob = unchanged(choice.log_prob, context, target)
    if isinstance(choice, Choice):
        same([choice.log_probs(context)], [every], "log_probs are those of log_prob")
        cost = choice.multiply_adds(torch.full((number,), 1 / number))
        assert 0 < cost < math.inf, "multiply_adds are positive"
    else:
        assert isinstance(choice, Drawn), "what is not listed is drawn: a subclass of Choice or of Drawn"
    prior = torch.randn(5, 2, dtype=torch.float64).log_softmax(-1)
    mixed = torch.logsumexp(prior + log_prob, dim=-1)
    same([choice.mixture_log_prob(context, prior, target)], [mixed], "mixture_log_prob is the mixture of log_prob")
    _check_nll(choice, context, prior, target)
    alone = choice.log_prob(context[:1], target[:1])
    same([alone], [log_prob[:1]], "positions do not depend on each other")
    differentiable(lambda one: choice.log_prob(one, target), context)
    if isinstance(choice, Drawn):
        _check_draws(choice, context[0, :1], outcomes, every[0, 0].exp() * width, seed)


def _outcomes(kind: str, number: int) -> tuple[Tensor, float]:
    if kind == "symbols":
        return torch.arange(number), 1.0
    if kind == "notes":
        return torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * number), 1.0
    grid = torch.linspace(-60, 60, 12001, dtype=torch.float64)
    return grid.unsqueeze(-1), 0.01


def _check_nll(choice: Conditional, context: Tensor, prior: Tensor, target: Tensor) -> None:
    weight = torch.linspace(0.0, 1.0, len(target), dtype=torch.float64)
    vectors, log_prior = context.clone().requires_grad_(), prior.clone().requires_grad_()
    inputs = [*(parameter for parameter in choice.parameters() if parameter.requires_grad), vectors, log_prior]

    def gradients(total: Tensor) -> Sequence[Tensor]:
        return torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)

    total, each = choice.mixture_nll(vectors, log_prior, target, weight)
    assert not each.requires_grad, "each NLL is detached"
    ours = [total, each, *gradients(total)]
    plain = -torch.logsumexp(log_prior + choice.log_prob(vectors, target), dim=-1)
    whole = (weight * plain).sum()
    same(ours, [whole, plain.detach(), *gradients(whole)], "mixture_nll is the NLL of the mixture, its gradients too")


def _check_draws(choice: Drawn, context: Tensor, outcomes: Tensor, probability: Tensor, seed: int) -> None:
    """Compare the distribution functions of draws and of probabilities, in the order of the outcomes."""
    number = 4000
    draws = [
        choice.sample(context.expand(number, -1), 1.0, torch.Generator().manual_seed(seed + again))
        for again in (0, 0, 1)
    ]
    assert draws[0].shape == (number, outcomes.shape[1]), "draws are [N, P]"
    assert torch.equal(draws[0], draws[1]), "the same generator draws the same"
    assert not torch.equal(draws[0], draws[2]), "draws are random"
    drawn = draws[0].double()
    places = (
        torch.bucketize(drawn[:, 0], outcomes[:, 0].contiguous())
        if outcomes.shape[1] == 1
        else (drawn.unsqueeze(1) == outcomes).all(-1).int().argmax(-1)
    )
    often = torch.bincount(places.clamp(max=len(outcomes) - 1), minlength=len(outcomes)) / number
    apart = (often.cumsum(0) - probability.cumsum(0)).abs().max().item()
    assert apart < 2.0 / math.sqrt(number), f"outcomes are drawn as often as they are probable, not {apart:.2g} off"


def check_context(record: config.Contexts, dims: Sequence[int] = (3, 5, 4), *, seed: int = 0) -> None:
    """A context layer: shapes, weights that add up to one, positions apart, arguments unchanged, gradients."""
    layer: ContextLayer = made(lambda: record.build(dims, "softmax"), ContextLayer, seed)
    levels = tuple(torch.randn(STEPS, ROWS, width, dtype=torch.float64) for width in dims)

    def read(*levels: Tensor) -> tuple[Tensor, Tensor]:
        return layer(Trace(levels, levels))

    vectors, log_prior = unchanged(read, *levels)
    assert vectors.shape == (STEPS, ROWS, vectors.shape[2], layer.size), "vectors are [T, B, K, size]"
    assert log_prior.shape == vectors.shape[:3], "the logarithms of the weights are [T, B, K]"
    same([log_prior.logsumexp(-1)], [torch.zeros(STEPS, ROWS).double()], "the weights add up to one")
    alone = read(*(level[2:3, 1:2] for level in levels))
    same(alone, (vectors[2:3, 1:2], log_prior[2:3, 1:2]), "positions do not depend on each other")
    differentiable(lambda *some: read(*some), *(level[:2, :1] for level in levels))


def check_encoder(
    record: config.Encoder, number: int = 7, *, words: Sequence[str] | None = None, seed: int = 0
) -> None:
    """An encoder: its shape, each step from its own input alone, arguments unchanged, weights that learn."""
    encoder: TokenEncoder = made(lambda: build_encoder(record, number, words, locked=True), TokenEncoder, seed)
    assert encoder.reads in ("symbols", "notes", "values"), "`reads` is symbols, notes or values"
    x = {
        "symbols": torch.arange(STEPS * ROWS).view(STEPS, ROWS) % number,
        "notes": (torch.rand(STEPS, ROWS, number) < 0.5).double(),
        "values": torch.randn(STEPS, ROWS, number).double(),
    }[encoder.reads]
    found = unchanged(encoder, x)
    assert found.shape == (STEPS, ROWS, encoder.size), "vectors are [T, B, size]"
    assert bool(torch.isfinite(found).all()), "vectors are finite"
    same([encoder(x[3:4, 1:2])], [found[3:4, 1:2]], "each vector is that of its own input")
    assert not torch.equal(encoder(x.roll(1, 0)), found), "vectors depend on the inputs"
    if weights := [parameter for parameter in encoder.parameters() if parameter.requires_grad]:
        gradients = torch.autograd.grad(found.square().sum(), weights, allow_unused=True)
        assert any(one is not None and one.abs().sum() > 0 for one in gradients), "its weights learn"


def check_core(record: config.Core, input_size: int = 3, num_outputs: int = 5, *, seed: int = 0) -> None:
    """A core: shapes, state, windows against the whole, causality, rows apart, arguments unchanged, gradients.

    Of cores of whole sentences (`reads`): without what is said of windows and of later inputs.
    """
    core: RecurrentCore = made(lambda: build_core(record, input_size, num_outputs, locked=True), RecurrentCore, seed)
    x = torch.randn(STEPS, ROWS, input_size, dtype=torch.float64)
    begun = map_state(lambda leaf: leaf.double() if leaf.is_floating_point() else leaf, core.begin(ROWS))
    assert all(len(leaf) == ROWS for leaf in leaves(begun)), "every tensor of the state is batch first"
    before = [leaf.clone() for leaf in leaves(begun)]
    trace, after = unchanged(lambda x: core(x, begun), x)
    assert all(map(torch.equal, before, leaves(begun))), "a core must not change the state that it is given"
    for part in (trace.levels, trace.raw):
        shapes = [tuple(level.shape) for level in part]
        assert shapes == [(STEPS, ROWS, width) for width in core.dims], "the levels of the trace have the widths `dims`"
    assert torch.equal(trace.raw[0], x), "level 0 is the input"
    assert bool(torch.isfinite(trace.top).all()), "outputs are finite"
    assert [leaf.shape for leaf in leaves(after)] == [leaf.shape for leaf in leaves(begun)], (
        "the state keeps its shapes"
    )
    alone, _ = core(x[:, :1], map_state(lambda leaf: leaf[:1], begun))
    same([alone.top], [trace.top[:, :1]], "sequences do not depend on each other")
    assert not torch.equal(core(x + 1.0, begun)[0].top, trace.top), "outputs depend on the inputs"
    if record.reads is None:
        first, between = core(x[:2], begun)
        second, end = core(x[2:], between)
        same([torch.cat([first.top, second.top])], [trace.top], "windows give what the whole sequence gives")
        same(leaves(end), leaves(after), "windows end in the state of the whole sequence")
        later = x.clone()
        later[3:] += 1.0
        same([core(later, begun)[0].top[:3]], [trace.top[:3]], "an output depends on no later input")
    if core(x.clone().requires_grad_(), begun)[0].top.requires_grad:  # a reservoir's does not
        differentiable(lambda x: core(x, map_state(lambda leaf: leaf[:1], begun))[0].top, x[:3, :1])


def check_composition(record: config.Composition, input_size: int = 3, size: int = SIZE, *, seed: int = 0) -> None:
    """A composition: shapes, two steps against one, nodes apart, order that counts or arity that is free, gradients."""
    part: Composition = made(lambda: record.build(input_size, size), Composition, seed)
    assert part.size == size, "`size` is the width of the vectors"
    words = torch.randn(ROWS, 2, input_size, dtype=torch.float64)
    children: NodeState = unchanged(part.leaf, words)
    assert children[0].shape == (ROWS, 2, size), "the first tensor of a node is its vector"
    first, second = (tuple(one[:, place] for one in children) for place in (0, 1))
    joined = part.join(part.left(first), part.right(second))
    composed = part.compose(children)
    assert [one.shape for one in joined] == [one.shape for one in first], "a node has the shapes of its children"
    same(composed, joined, "`compose` joins what both children contribute")
    alone = part.compose(tuple(one[:1] for one in children))
    same(alone, [one[:1] for one in composed], "nodes do not depend on each other")
    wide = part.join(
        tuple(one.unsqueeze(1) for one in part.left(first)), tuple(one.unsqueeze(0) for one in part.right(second))
    )
    places = torch.arange(ROWS)
    same([one[places, places] for one in wide], joined, "contributions can be broadcast, as a chart does")
    if part.any_arity:
        there = torch.tensor([[True, True, False]]).expand(ROWS, 3)
        three = tuple(torch.cat([one, torch.randn_like(one[:, :1])], dim=1) for one in children)
        same(part.compose(three, there), composed, "a child that is not there does not count")
    differentiable(lambda words: part.compose(part.leaf(words))[0], words[:1])
