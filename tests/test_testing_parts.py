"""The checks for the parts of plug-ins besides cells and activations: elman's own pass, wrong ones fail."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch

from elman import config, testing
from elman.config.parts import members
from elman.learning.bptt import WholeWindow
from elman.learning.optimisers import Optimiser
from elman.learning.projections.projector import BySVD
from elman.network.build import build_model
from elman.network.output.bernoulli import BernoulliChoice
from elman.network.output.contexts import SingleContexts
from elman.network.output.flat import FlatChoice
from elman.objective.criteria import Mean
from elman.objective.penalties import Activation, Balance, NormStabiliser, Stability, TemporalActivation
from elman.study import claims
from support import networks

OUTPUTS = networks.CHOICES | {networks.tag(kind): networks.example(kind) for kind in networks.OF_VECTORS}
CORES = {
    networks.tag(kind): networks.example(kind)
    for kind in members(config.Core).values()
    if networks.tag(kind) not in ("attentive", "jordan", "recursive", "reservoir", "sentence")
} | {
    "jordan": config.Jordan(size=4, feedback="target"),
    "recursive": config.Recursive(size=4),
    "reservoir": config.Reservoir(size=9),
    "sentence": config.Sentence(stack=config.Stack(sizes=(4,))),
    "stack-graves": config.Stack(sizes=(4, 4), connections="graves"),
}
"""An attentive core needs a source."""

MIXED = config.Model(
    encoder=config.Lookup(size=4),
    core=config.Stack(sizes=(5, 4)),
    output=config.Output(contexts=networks.CONTEXTS["doc"]),
)
PENALTIES = {
    "ar": (Activation(weight=2.0), None),
    "tar": (TemporalActivation(weight=2.0), None),
    "norm-stabiliser": (NormStabiliser(weight=2.0), None),
    "balance": (Balance(weight=0.5), MIXED),
    "balance-minibatch": (Balance(weight=0.5, form="minibatch"), MIXED),
    "stability": (Stability(weight=0.5), None),
    "stability-1": (Stability(weight=0.5, tier=1), None),
}
OPTIMISERS = {
    "sgd": config.SGD(lr=0.1),
    "momentum": config.SGD(lr=0.1, momentum=0.9, nesterov=True),
    "adam": config.Adam(),
    "adamw": config.Adam(decoupled=True),
    "rmsprop": config.RMSprop(),
    "rmsprop-momentum": config.RMSprop(momentum=0.5),
    "muon": config.Muon(),
}
RULES = {
    "bptt": config.BPTT(),
    "bptt-2": config.BPTT(steps=2),
    "attenuated": config.BPTT(attenuation=0.5),
    "rtrl": config.RTRL(),
}


def below(bound):
    return lambda matrix: bool(torch.linalg.svdvals(matrix)[0] <= bound + 1e-4)


def orthogonal(matrix):
    return torch.allclose(matrix.T @ matrix, torch.eye(matrix.shape[1]), atol=1e-4)


CONSTRAINTS = {
    **{method: (config.Spectral(method=method), below(1.8)) for method in ("subspace", "eigh", "svd")},
    "truncated": (config.Spectral(method="truncated", compare_norms=True), below(2.0)),
    "truncated-limit": (config.Spectral(method="truncated", count_at="limit", step_norm="spectral"), below(1.8)),
    "orthogonal": (config.OrthogonalWeights(), orthogonal),
    "spectral-norm": (config.SpectralNorm(), None),
    "spectral-norm-down": (config.SpectralNorm(always=False), below(1.0)),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_output_keeps_the_rules(name):
    testing.check_output(OUTPUTS[name])


@pytest.mark.parametrize("name", networks.CONTEXTS)
def test_every_context_keeps_the_rules(name):
    testing.check_context(networks.CONTEXTS[name])


@pytest.mark.parametrize("name", members(config.Encoder))
def test_every_encoder_keeps_the_rules(name):
    testing.check_encoder(networks.example(members(config.Encoder)[name]))


@pytest.mark.parametrize("name", CORES)
def test_every_core_keeps_the_rules(name):
    testing.check_core(CORES[name])


@pytest.mark.parametrize("name", members(config.Composition))
def test_every_composition_keeps_the_rules(name):
    testing.check_composition(networks.example(members(config.Composition)[name]))


@pytest.mark.parametrize("name", members(config.Criterion))
def test_every_loss_keeps_the_rules(name):
    testing.check_loss(networks.example(members(config.Criterion)[name]))


@pytest.mark.parametrize("name", PENALTIES)
def test_every_penalty_keeps_the_rules(name):
    penalty, model = PENALTIES[name]
    testing.check_penalty(penalty, None if model is None else build_model(model, 7))


@pytest.mark.parametrize("name", RULES)
def test_every_learning_rule_keeps_the_rules(name):
    testing.check_rule(RULES[name])


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_keeps_the_rules(name):
    testing.check_optimiser(OPTIMISERS[name])


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_constraint_keeps_the_rules(name):
    testing.check_constraint(*CONSTRAINTS[name])


def test_a_constraint_of_the_inputs_keeps_the_rules():
    testing.check_constraint(config.Spectral(input=True), below(2.0), of_input=True)


@pytest.mark.parametrize("group", ["Penalty", "Optimiser", "Rule", "Constraint", "Criterion"])
def test_no_part_of_training_is_left_out(group):
    tried = {
        "Penalty": [one for one, _ in PENALTIES.values()],
        "Optimiser": OPTIMISERS.values(),
        "Rule": RULES.values(),
        "Constraint": [one for one, _ in CONSTRAINTS.values()],
        "Criterion": [networks.example(one) for one in members(config.Criterion).values()],
    }
    assert {type(one) for one in tried[group]} == set(members(getattr(config, group)).values())


def test_every_claim_keeps_the_rules():
    for claim in claims.CLAIMS.values():
        testing.check_claim(claim)


def built(module, family=config.Choice, **attributes):
    """A record whose `build` makes this module, whatever surrounds it."""
    body = {"build": lambda self, *surroundings: module(*surroundings), **attributes}
    return type("Wrong", (family,), body, frozen=True, tag="wrong")()


def of_flat(**methods):
    """The choice `flat` with other methods."""
    return built(type("Other", (_Open,), methods))


class _Open(FlatChoice.__bases__[0]):
    """As FlatChoice, which is final: the softmax of a product."""

    def __init__(self, surroundings):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(surroundings.num_outputs, surroundings.size))

    def scores(self, context):
        return context @ self.weight.T


def shifted_scores(self, context):
    return context @ self.weight.T + context.mean(0)[..., :1] * torch.arange(len(self.weight))


def constant_nll(self, context, log_prior, target, position_weight):
    nll = -self.mixture_log_prob(context, log_prior.detach(), target)
    return (position_weight * nll).sum(), nll.detach()


def wrong_each(self, context, log_prior, target, position_weight):
    nll = -self.mixture_log_prob(context, log_prior, target)
    return (position_weight * nll).sum(), 2 * nll.detach()


def in_place(self, context, target):
    return networks_scores(self, context.mul_(1.5)).gather(-1, target.view(-1, 1, 1).expand(-1, 2, 1)).squeeze(-1)


def networks_scores(self, context):
    return (context @ self.weight.T).log_softmax(-1)


def random_start(self, rules, tied=()):
    super(_Open, self).initialise(rules, tied)
    self.weight.data += torch.rand((), generator=torch.Generator().manual_seed(int(torch.empty(1).data_ptr() % 2**31)))


@pytest.mark.parametrize(
    ("output", "rule"),
    [
        (of_flat(log_probs=lambda self, context: context @ self.weight.T), "log_probs and log_prob agree"),
        (of_flat(log_prob=lambda self, context, target: -torch.ones(context.shape[:2]).double()), "add up to one"),
        (of_flat(log_prob=in_place), "must not be changed"),
        (of_flat(scores=shifted_scores), "log_probs and log_prob agree"),
        (of_flat(mixture_log_prob=lambda self, c, p, t: self.log_prob(c, t)[:, 0]), "is the mixture of log_prob"),
        (of_flat(mixture_nll=constant_nll), "NLL of the mixture, its gradients too"),
        (of_flat(mixture_nll=wrong_each), "NLL of the mixture"),
        (of_flat(multiply_adds=lambda self, frequency: 0.0), "multiply_adds are positive"),
        (of_flat(initialise=lambda self, rules, tied=(): None), "`initialise` fills weight|same random state"),
        (of_flat(scores=lambda self, context: (context @ self.weight.T).detach()), "Jacobian|gradient|NLL of"),
        (of_flat(predicts="words"), "`predicts` is symbols, notes or values"),
        (built(lambda surroundings: 3), "`build` makes a Conditional"),
    ],
)
def test_a_wrong_output_is_found(output, rule):
    with pytest.raises((AssertionError, RuntimeError), match=rule):
        testing.check_output(output)


class Notes(BernoulliChoice.__bases__[0]):
    """As BernoulliChoice, which is final, without a bias."""

    def __init__(self, surroundings):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(surroundings.num_outputs, surroundings.size))

    def log_prob(self, context, target):
        odds = context @ self.weight.T
        return (target.unsqueeze(1) * odds - odds.exp().log1p()).sum(-1)

    def sample(self, context, temperature, generator):
        odds = context @ self.weight.T
        return (torch.rand(odds.shape, generator=generator) < odds.sigmoid()).double()


def always(self, context, temperature, generator):
    return ((context @ self.weight.T) > 0).double()


def doubled(self, context, temperature, generator):
    odds = 3 * context @ self.weight.T
    return (torch.rand(odds.shape, generator=generator) < odds.sigmoid()).double()


def ungoverned(self, context, temperature, generator):
    odds = context @ self.weight.T
    return (torch.rand(odds.shape) < odds.sigmoid()).double()


def test_notes_of_one_position_that_depend_on_others_are_found():
    def log_prob(self, context, target):
        return Notes.log_prob(self, context + context.mean(0), target)

    with pytest.raises(AssertionError, match="positions do not depend"):
        testing.check_output(built(type("Other", (Notes,), {"log_prob": log_prob})))


@pytest.mark.parametrize(
    ("sample", "rule"),
    [(always, "draws are random"), (doubled, "as often as they are probable"), (ungoverned, "same generator")],
)
def test_wrong_draws_are_found(sample, rule):
    testing.check_output(built(Notes))
    with pytest.raises(AssertionError, match=rule):
        testing.check_output(built(type("Other", (Notes,), {"sample": sample})))


class Top(SingleContexts.__bases__[0]):
    def __init__(self, dims, activation):
        super().__init__()
        self.size = dims[-1]

    def read(self, trace):
        vectors = self.vectors(trace.top).unsqueeze(-2)
        return networks_contexts(vectors, self.prior(vectors))

    def vectors(self, top):
        return top

    def prior(self, vectors):
        return vectors.new_zeros(vectors.shape[:-1])


def networks_contexts(vectors, prior):
    from elman.network.output.contexts import Contexts

    return Contexts(vectors, prior)


@pytest.mark.parametrize(
    ("methods", "rule"),
    [
        ({"prior": lambda self, vectors: vectors.sum(-1)}, "add up to one"),
        ({"vectors": lambda self, top: top - top.mean((0, 1))}, "positions do not depend"),
        ({"vectors": lambda self, top: top[..., 1:]}, "vectors are"),
        ({"vectors": lambda self, top: top.mul_(2.0)}, "must not be changed"),
        ({"vectors": lambda self, top: top + 3 * (top.detach() - top)}, "Jacobian"),
    ],
)
def test_wrong_contexts_are_found(methods, rule):
    testing.check_context(built(Top, config.Contexts))
    with pytest.raises((AssertionError, RuntimeError), match=rule):
        testing.check_context(built(type("Other", (Top,), methods), config.Contexts))


def encoder(forward, reads="symbols"):
    from elman.network.encoders.encoder import TokenEncoder

    class Wrong(TokenEncoder):
        size = 4

        def __init__(self, inputs):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(inputs.number, 4))

        def initialise(self, rules):
            self.weight.data.normal_()

    Wrong.forward, Wrong.reads = forward, reads
    Wrong.__abstractmethods__ = frozenset()
    return built(Wrong, config.Encoder)


@pytest.mark.parametrize(
    ("forward", "rule"),
    [
        (lambda self, x: self.weight[x].roll(1, 0), "its own input alone"),
        (lambda self, x: self.weight[x] - self.weight[x].mean(1, keepdim=True), "its own input alone"),
        (lambda self, x: self.weight[x][..., :3], "vectors are"),
        (lambda self, x: self.weight[0 * x], "depend on the inputs"),
        (lambda self, x: self.weight[x] / 0, "finite"),
        (lambda self, x: self.weight.detach()[x].requires_grad_(), "weights learn"),
        (lambda self, x: self.weight[x.zero_()], "must not be changed"),
    ],
)
def test_a_wrong_encoder_is_found(forward, rule):
    testing.check_encoder(encoder(lambda self, x: self.weight[x]))
    with pytest.raises(AssertionError, match=rule):
        testing.check_encoder(encoder(forward))


def core(change=None, begin=None):
    from elman.network.cores.core import RecurrentCore, Trace

    class Sums(RecurrentCore):
        """Running sums of what a matrix makes of the inputs."""

        def __init__(self, surroundings):
            super().__init__()
            self.dims = (surroundings.input_size, 4)
            self.weight = torch.nn.Parameter(torch.empty(surroundings.input_size, 4))

        def begin(self, batch):
            return (torch.zeros(batch, 4),) if begin is None else begin(batch)

        def forward(self, x, state):
            sums = state[0].double() + (x @ self.weight).cumsum(0)
            trace = Trace((x, sums), (x, sums))
            return (trace, (sums[-1],)) if change is None else change(self, x, sums, state)

        def initialise(self, rules):
            self.weight.data.normal_()

    return built(Sums, config.Core)


def traced(x, top, state):
    from elman.network.cores.core import Trace

    return Trace((x, top), (x, top)), (state,)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda self, x, sums, state: traced(x, sums + x.flip(0) @ self.weight, sums[-1]), "windows|later input"),
        (lambda self, x, sums, state: traced(x, sums, sums[0]), "windows"),
        (lambda self, x, sums, state: traced(x, sums + sums.mean(1, keepdim=True), sums[-1]), "sequences do not"),
        (lambda self, x, sums, state: traced(x, sums, state[0].add_(1)), "must not change the state"),
        (lambda self, x, sums, state: traced(x, sums[..., :3], sums[-1]), "widths"),
        (lambda self, x, sums, state: traced(x, 0 * sums, sums[-1]), "depend on the inputs"),
        (
            lambda self, x, sums, state: traced(x, sums.detach() + self.weight.sum(), sums[-1]),
            "Jacobian|expected to be",
        ),
        (lambda self, x, sums, state: traced(2 * x, sums, sums[-1]), "level 0 is the input"),
        (lambda self, x, sums, state: traced(x, sums, sums[-1, :, :2]), "keeps its shapes"),
    ],
)
def test_a_wrong_core_is_found(change, rule):
    testing.check_core(core())
    with pytest.raises((AssertionError, RuntimeError), match=rule):
        testing.check_core(core(change))


def composition(**methods):
    from elman.network.trees.composition import Composition

    class Sum(Composition):
        def __init__(self, input_size, size):
            super().__init__()
            self.size = size
            self.weight = torch.nn.Parameter(torch.empty(input_size, size))

        def leaf(self, x):
            return (x @ self.weight,)

        def left(self, child):
            return (2 * child[0],)

        def right(self, child):
            return child

        def join(self, left, right):
            return ((left[0] + right[0]).tanh(),)

        def initialise(self, rules):
            self.weight.data.normal_()

    return built(type("Other", (Sum,), methods), config.Composition)


@pytest.mark.parametrize(
    ("methods", "rule"),
    [
        ({"compose": lambda self, children, there=None: (children[0].sum(1).tanh(),)}, "joins what both"),
        (
            {"join": lambda self, left, right: ((left[0] + right[0] - right[0].mean(0)).tanh(),)},
            "nodes do not|broadcast",
        ),
        ({"join": lambda self, left, right: ((left[0] + right[0])[..., :2],)}, "shapes of its children"),
        ({"leaf": lambda self, x: ((x.mul_(2) @ self.weight),)}, "must not be changed"),
        ({"leaf": lambda self, x: ((x @ self.weight)[..., :3],)}, "is its vector"),
        (
            {
                "any_arity": True,
                "compose": lambda self, children, there=None: (
                    (2 * children[0][:, 0] + children[0][:, 1:].sum(1)).tanh(),
                ),
            },
            "that is not there does not count",
        ),
    ],
)
def test_a_wrong_composition_is_found(methods, rule):
    testing.check_composition(composition())
    with pytest.raises(AssertionError, match=rule):
        testing.check_composition(composition(**methods))


def loss(call):
    return type("Wrong", (config.Criterion,), {"__call__": call}, frozen=True, tag="wrong")()


def smoothed(self, seen):
    """Label smoothing (Szegedy et al. 2016)."""
    log_probs = seen.log_probs
    nll = -log_probs.gather(-1, seen.batch.targets.unsqueeze(-1)).squeeze(-1)
    return seen.mean(0.9 * nll - 0.1 * log_probs.mean(-1)), nll.detach()


def test_label_smoothing_keeps_the_rules():
    testing.check_loss(loss(smoothed))


def per_part(self, seen):
    return Mean()(seen._replace(batch=seen.batch._replace(whole=None)))


def padding(self, seen):
    return Mean()(seen._replace(batch=seen.batch._replace(mask=None, whole=None)))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (per_part, "add up to the loss of the batch"),
        (padding, "add up|do not count"),
        (lambda self, seen: (Mean()(seen)[0], 2 * Mean()(seen)[1]), "log p of its target"),
        (lambda self, seen: (-Mean()(seen)[0], Mean()(seen)[1]), "lowers the NLL"),
        (lambda self, seen: (Mean()(seen)[0].detach().requires_grad_(), Mean()(seen)[1]), "can follow the loss"),
        (lambda self, seen: (Mean()(seen)[1], Mean()(seen)[1]), "scalar"),
        (lambda self, seen: (Mean()(seen)[0] / 0, Mean()(seen)[1]), "finite"),
    ],
)
def test_a_wrong_loss_is_found(call, rule):
    with pytest.raises(AssertionError, match=rule):
        testing.check_loss(loss(call))


def penalty(call):
    return type("Wrong", (config.Penalty,), {"__call__": call}, frozen=True, tag="wrong")(weight=0.5)


def without_whole(self, seen):
    return Activation(weight=self.weight)(seen._replace(batch=seen.batch._replace(whole=None)))


def squares(self, seen):
    return self.weight * seen.trace.top.square().mean() * seen.batch.share


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (squares, "mask leaves out do not count"),
        (lambda self, seen: Activation(weight=1.0)(seen), "in proportion to its weight"),
        (
            lambda self, seen: Activation(weight=self.weight)(seen._replace(batch=seen.batch._replace(whole=None))),
            "share",
        ),
        (lambda self, seen: Activation(weight=self.weight)(seen).detach(), "depends on activations or weights"),
        (lambda self, seen: Activation(weight=self.weight)(seen).detach().requires_grad_(), "can follow"),
        (lambda self, seen: self.weight * seen.trace.top.square(), "scalar"),
        (lambda self, seen: Activation(weight=self.weight)(seen) / 0, "finite"),
    ],
)
def test_a_wrong_penalty_is_found(call, rule):
    with pytest.raises(AssertionError, match=rule):
        testing.check_penalty(penalty(call))


def rule_of(call):
    learner = type("Wrong", (WholeWindow,), {"__call__": call})
    return type("WrongRule", (config.Rule,), {"build": lambda self: learner()}, frozen=True, tag="wrong")()


def whole(*given):
    return WholeWindow()(*given)


def moves(self, model, *given):
    found = whole(model, *given)
    next(model.parameters()).data.add_(0.1)
    return found


def replaces(self, model, *given):
    model.zero_grad()
    return whole(model, *given)


def undetached(self, model, objective, batch, state):
    loss, _ = whole(model, objective, batch, state)
    return loss, objective(model, batch, state)[1]


def stays(self, model, objective, batch, state):
    return whole(model, objective, batch, state)[0], state


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (moves, "weights do not change|its loss is"),
        (replaces, "gradients are added"),
        (undetached, "no gradient history"),
        (stays, "that after the window"),
        (lambda self, model, objective, batch, state: (objective(model, batch, state)[0], state), "loss is detached"),
    ],
)
def test_a_wrong_learning_rule_is_found(call, rule):
    with pytest.raises(AssertionError, match=rule):
        testing.check_rule(rule_of(call))


def optimiser(update, memory=()):
    body = {"update": update, "memory": memory}
    return type("Wrong", (config.Optimiser,), body, frozen=True, tag="wrong")(lr=0.1)


def descend(parameters, gradients, lr):
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.sub_(lr * gradient)


def kept_elsewhere():
    """A velocity that no checkpoint holds."""
    held = {}

    def update(self, parameters, gradients, memory, lr, weight_decay):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            held[parameter.data_ptr()] = velocity = 0.5 * held.get(parameter.data_ptr(), 0) + gradient
            parameter.sub_(lr * velocity)

    return update


@pytest.mark.parametrize(
    ("update", "rule"),
    [
        (lambda self, w, g, m, lr, decay: descend(w, g, -lr), "goes down"),
        (lambda self, w, g, m, lr, decay: descend(w, g, 1e-3), "in proportion to the learning rate"),
        (lambda self, w, g, m, lr, decay: descend(w, g, lr**2), "in proportion to the learning rate"),
        (kept_elsewhere(), "bit for bit"),
        (lambda self, w, g, m, lr, decay: None, "goes down"),
    ],
)
def test_a_wrong_optimiser_is_found(update, rule):
    with pytest.raises(AssertionError, match=rule):
        testing.check_optimiser(optimiser(update))


def test_an_optimiser_that_moves_what_has_no_gradient_is_found():
    class Everything(Optimiser):
        def step(self):
            super().step()
            self.parameters[2].data.add_(0.1)

    record = type("Wrong", (config.SGD,), {"build": lambda self, *given: Everything(self, given[0])}, frozen=True)
    with pytest.raises(AssertionError, match="without a gradient stays"):
        testing.check_optimiser(record(lr=0.1))


def constraint(project):
    projector = type("Wrong", (BySVD,), {"project_": project})
    body = {"projector": lambda self, *, of_input: projector(1.0)}
    return type("WrongConstraint", (config.Constraint,), body, frozen=True, tag="wrong")()


def by_memory(self, matrix):
    BySVD.project_(self, matrix)
    matrix.mul_(1 - 1e-3 * getattr(self, "calls", 0))
    self.calls = getattr(self, "calls", 0) + 1


@pytest.mark.parametrize(
    ("project", "rule"),
    [
        (lambda self, matrix: matrix.mul_(0.5), "is inside|stays where it is"),
        (lambda self, matrix: matrix.div_(torch.linalg.svdvals(matrix)[0]), "kept as it is"),
        (lambda self, matrix: matrix.copy_(matrix / 0), "finite"),
        (lambda self, matrix: None, "inside"),
        (by_memory, "stays where it is|bit for bit"),
    ],
)
def test_a_wrong_constraint_is_found(project, rule):
    testing.check_constraint(constraint(BySVD.project_), below(1.0))
    with pytest.raises(AssertionError, match=rule):
        testing.check_constraint(constraint(project), below(1.0))


def test_a_projection_that_leaves_its_matrix_is_found():
    def beside(self, matrix):
        BySVD.project_(self, matrix)
        matrix.as_strided((12, 6), (6, 1))[-1].zero_()

    with pytest.raises(AssertionError, match="only the matrix itself"):
        testing.check_constraint(constraint(beside), below(1.0))


class AllMetrics:
    def __contains__(self, name):
        return True


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"sentence": ""}, "a sentence, with the place"),
        ({"comparisons": ()}, "decided by comparisons"),
        ({"measure": SimpleNamespace(metrics={}, function=None)}, "is compared, and not measured"),
        ({"measure": SimpleNamespace(metrics=AllMetrics(), function=None)}, "nothing measures the runs"),
        ({"arms": (SimpleNamespace(label="none", at=lambda scale: None),)}, "exists at no scale"),
    ],
)
def test_a_wrong_claim_is_found(changes, rule):
    claim = next(one for one in claims.CLAIMS.values() if one.measure.function is not None)
    facts = {field.name: getattr(claim, field.name) for field in dataclasses.fields(claim)}
    with pytest.raises(AssertionError, match=rule):
        testing.check_claim(SimpleNamespace(**facts | changes))
