"""What every loss, penalty, learning rule, optimiser and constraint must fulfil."""

from collections.abc import Callable
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from elman.config.training import Constraint, Criterion, Penalty, Rule
from elman.config.training import Optimiser as Record
from elman.data.batches import Batch, Whole
from elman.learning.bptt import Learner
from elman.learning.optimisers import Optimiser
from elman.learning.projections.projector import Projector
from elman.network.build import tiny_model
from elman.network.model import LanguageModel
from elman.network.state import leaves
from elman.objective.criteria import Seen
from elman.objective.loss import Objective
from elman.testing.modules import same

STEPS, ROWS, WORDS = 5, 4, 7


def _window(model: LanguageModel | None, seed: int) -> tuple[LanguageModel, Batch, Batch]:
    torch.manual_seed(seed)
    model = (tiny_model(WORDS) if model is None else model).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.6)
    symbols = torch.randint(WORDS, (STEPS + 1, ROWS))
    mask = torch.arange(STEPS).unsqueeze(1) < torch.tensor([5, 4, 2, 5])
    return model, Batch(symbols[:-1], symbols[1:]), Batch(symbols[:-1], symbols[1:], mask)


def _halves(batch: Batch) -> list[Batch]:
    return [batch.columns(slice(*ends))._replace(whole=Whole.of(batch)) for ends in ((0, 2), (2, ROWS))]


def check_loss(criterion: Criterion, *, seed: int = 0) -> None:
    """A loss: a scalar that can be followed, the NLL of each target, what a mask leaves out, and parts of a batch."""
    model, plain, masked = _window(None, seed)

    def of(batch: Batch) -> tuple[Tensor, Tensor]:
        trace, _ = model.trace(batch.inputs, model.begin(batch.num_columns))
        return criterion(Seen(model, trace, model.output.contexts(trace), batch))

    for batch in (plain, masked):
        value, each = of(batch)
        assert value.shape == (), "a loss is a scalar"
        assert bool(value.isfinite()), "a loss is finite"
        assert not each.requires_grad, "each NLL is detached"
        log_prob, _ = model.log_prob(batch.inputs, batch.targets, model.begin(ROWS))
        same([each], [-log_prob.detach()], "each NLL is -log p of its target, which is what is reported")
        gradients = torch.autograd.grad(value, list(model.parameters()), allow_unused=True)
        assert any(one is not None and one.abs().sum() > 0 for one in gradients), "weights can follow the loss"
        parts = torch.stack([of(half)[0] for half in _halves(batch)])
        same([parts.sum()], [value], "the losses of parts of a batch add up to the loss of the batch")
    other = torch.where(masked.mask, masked.targets, (masked.targets + 1) % WORDS)  # type: ignore[arg-type]
    same([of(masked._replace(targets=other))[0]], [of(masked)[0]], "targets that the mask leaves out do not count")
    weights = list(model.parameters())
    nll = -model.log_prob(plain.inputs, plain.targets, model.begin(ROWS))[0].mean()
    pairs = zip(torch.autograd.grad(of(plain)[0], weights), torch.autograd.grad(nll, weights), strict=True)
    assert sum(float((ours * theirs).sum()) for ours, theirs in pairs) > 0, "a small step that lowers it lowers the NLL"


def check_penalty(penalty: Penalty, model: LanguageModel | None = None, *, seed: int = 0) -> None:
    """A penalty: a scalar in proportion to its weight, with a gradient, what a mask leaves out, and parts of a batch.

    `model` is one on 7 words for which it is defined; None: a small LSTM. Its weights are drawn again.
    """
    model, plain, masked = _window(model, seed)
    penalty.check(model)

    def of(batch: Batch, one: Penalty = penalty, change: float = 0.0) -> Tensor:
        trace, _ = model.trace(batch.inputs, model.begin(batch.num_columns))
        contexts = model.output.contexts(trace)
        if batch.mask is not None and change:
            away = change * (~batch.mask).double().unsqueeze(-1)
            trace = trace._replace(
                levels=tuple(level + away for level in trace.levels), raw=tuple(level + away for level in trace.raw)
            )
            contexts = contexts._replace(
                vectors=contexts.vectors + away.unsqueeze(-1), log_prior=contexts.log_prior + away
            )
        value: Tensor = one(Seen(model, trace, contexts, batch))
        return value

    for batch in (plain, masked):
        value = of(batch)
        assert value.shape == (), "a penalty is a scalar"
        assert bool(value.isfinite()), "a penalty is finite"
        assert value.requires_grad, "a penalty depends on activations or weights"
        gradients = torch.autograd.grad(value, list(model.parameters()), allow_unused=True)
        assert any(one is not None and one.abs().sum() > 0 for one in gradients), "weights can follow a penalty"
        heavier = msgspec.structs.replace(penalty, weight=2 * penalty.weight)
        same([of(batch, heavier)], [2 * value], "a penalty is in proportion to its weight")
    same([of(masked, change=1.0)], [of(masked)], "positions that the mask leaves out do not count")
    for half in _halves(plain):
        same([of(half)], [of(half._replace(whole=None)) / 2], "half of the columns count as a half (`batch.share`)")


def check_rule(rule: Rule, *, seed: int = 0) -> None:
    """A learning rule: the loss of the window, gradients added to the present ones, a state without a history."""
    model, plain, masked = _window(None, seed)
    learner = rule.build()
    assert isinstance(learner, Learner), "`build` makes a Learner"
    learner.check(model, ROWS)
    for batch in (plain, masked):
        model.zero_grad()
        weights = [parameter.detach().clone() for parameter in model.parameters()]
        loss, after = learner(model, Objective(), batch, learner.begin(model, ROWS))
        wanted, state = Objective()(model, batch, model.begin(ROWS))
        same(
            [loss.objective, loss.nll_sum],
            [wanted.objective.detach(), wanted.nll_sum],
            "its loss is the loss of the window",
        )
        assert not loss.objective.requires_grad, "the loss is detached"
        assert not any(leaf.requires_grad for leaf in leaves(after)), "the state has no gradient history"
        same(leaves(learner.model_state(after)), leaves(state), "the state is that after the window")
        assert all(map(torch.equal, weights, model.parameters())), "the weights do not change"
        first = _gradients(model)
        assert all(one is not None for one in first.values()), "every weight has a gradient"
        learner(model, Objective(), batch, learner.begin(model, ROWS))
        same(_gradients(model).values(), [2 * one for one in first.values()], "gradients are added to those there")


def _gradients(model: nn.Module) -> dict[str, Any]:
    found = {name: one.grad for name, one in model.named_parameters()}
    return {name: None if one is None else one.clone() for name, one in found.items()}


def check_optimiser(record: Record, *, seed: int = 0) -> None:
    """An optimiser: steps down a quadratic, in proportion to the rate, the same after its state was saved and restored.

    Parameters without a gradient stay; a rate of 0 changes nothing.
    """

    def made() -> tuple[list[nn.Parameter], Optimiser]:
        torch.manual_seed(seed)
        shapes = ((4, 3), (3,), (2, 5))
        parameters = [nn.Parameter(torch.randn(*shape, dtype=torch.float64)) for shape in shapes]
        optimiser = record.build(parameters, [parameters[0], parameters[2]], 0.0)
        assert isinstance(optimiser, Optimiser), "`build` makes an Optimiser"
        assert optimiser.lr == record.lr, "it begins with the rate of the recipe"
        return parameters, optimiser

    def distance(parameters: list[nn.Parameter]) -> Tensor:
        return torch.stack([(one - 3.0).square().sum() for one in parameters[:2]]).sum()

    def step(parameters: list[nn.Parameter], optimiser: Optimiser, lr: float) -> list[Tensor]:
        """The changes by one step; the last parameter has no gradient."""
        before = [one.detach().clone() for one in parameters]
        optimiser.zero_grad()
        assert all(one.grad is None for one in parameters), "`zero_grad` clears the gradients"
        distance(parameters).backward()
        optimiser.lr = lr
        optimiser.step()
        return [one.detach() - old for one, old in zip(parameters, before, strict=True)]

    parameters, optimiser = made()
    begun = distance(parameters)
    changes = step(parameters, optimiser, 1e-3)
    assert distance(parameters) < begun, "a small step goes down"
    assert not changes[2].any(), "a parameter without a gradient stays"
    halved = step(*made(), 5e-4)
    same(
        halved,
        [one / 2 for one in changes],
        "a step is in proportion to the learning rate, which a schedule may change",
    )
    for _ in range(50):
        step(parameters, optimiser, 1e-2)
    assert distance(parameters) < begun, "steps go down"
    saved = {name: tensor.clone() for name, tensor in optimiser.tensors().items()}
    again, restored = made()
    with torch.no_grad():
        for one, other in zip(again, parameters, strict=True):
            one.copy_(other)
    restored.restore(saved)
    for _ in range(3):
        step(parameters, optimiser, 1e-2)
        step(again, restored, 1e-2)
    assert all(map(torch.equal, again, parameters)), "it continues bit for bit from what `tensors` gave"
    assert not any(one.any() for one in step(parameters, optimiser, 0.0)), "a rate of 0 changes nothing"


def check_constraint(
    record: Constraint, inside: Callable[[Tensor], bool] | None = None, *, of_input: bool = False, seed: int = 0
) -> None:
    """A constraint: what is projected is inside and stays, in place, also as a view; the same after a restoration.

    `inside` determines whether a matrix fulfils the constraint; where small matrices do, they must be kept as they are.
    """
    for shape in ((6, 6), (8, 5)) if of_input else ((6, 6),):
        torch.manual_seed(seed)
        stacked = 2.0 * torch.randn(2 * shape[0], shape[1])
        matrix, rest = stacked[: shape[0]], stacked[shape[0] :].clone()
        projector = record.projector(of_input=of_input)
        assert isinstance(projector, Projector), "`projector` makes a Projector"
        projector.project_(matrix)
        assert torch.equal(stacked[shape[0] :], rest), "only the matrix itself is changed"
        assert bool(matrix.isfinite().all()), "what is projected is finite"
        assert inside is None or inside(matrix), "what is projected is inside"
        again = matrix.clone()
        projector.project_(again)
        torch.testing.assert_close(
            again, matrix, atol=1e-4, rtol=1e-4, msg=lambda told: f"a projection stays where it is: {told}"
        )
        other = record.projector(of_input=of_input)
        other.restore({name: tensor.clone() for name, tensor in projector.tensors().items()}, matrix.device)
        moved = again + 0.3 * torch.randn(shape)
        ours, theirs = moved.clone(), moved.clone()
        projector.project_(ours)
        other.project_(theirs)
        assert torch.equal(ours, theirs), "it continues bit for bit from what `tensors` gave"
        assert projector.counts() == other.counts(), "counts belong to the last projection"
        small = 0.01 * torch.randn(shape)
        if inside is not None and inside(small):
            kept = small.clone()
            record.projector(of_input=of_input).project_(kept)
            assert torch.equal(kept, small), "what is inside is kept as it is"
