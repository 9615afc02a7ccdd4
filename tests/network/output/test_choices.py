"""The contract of every choice, alone and inside mixtures, and each against its paper in NumPy."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from elman import config
from elman.config.inference import Sampling
from elman.decoding.sampling import draw
from elman.errors import UserError
from elman.learning import checkpoint
from elman.network.build import build_model
from elman.network.output.activation import log_g
from elman.network.output.adaptive import AdaptiveChoice
from elman.network.output.choice import Surroundings, biases_of, unigram
from reference import choices as reference
from support import networks
from support.pairwise import every_pair, every_value
from support.parameters import slow_except

STEPS, ROWS, WORDS = 3, 2, len(networks.COUNTS)

everywhere = every_value(choice=networks.CHOICES, contexts=networks.CONTEXTS)
each = pytest.mark.parametrize("choice", networks.CHOICES)
ACTIVATIONS = slow_except(("softmax",), ("softmax", "sigsoftmax", "sigmoid", "spherical", "taylor"))


def given(choice, contexts, activation="softmax"):
    """A model, its trace of random symbols, and targets among which every word is."""
    model = networks.choice_model(choice, contexts, activation)
    trace, _ = model.trace(torch.randint(WORDS, (7, ROWS)), model.begin(ROWS))
    target = torch.cat([torch.randperm(WORDS), torch.zeros(1, dtype=torch.int64)]).view(7, ROWS)
    return model, trace, target


def forms(choice):
    """The fast form, and the plain one where there are two."""
    if not isinstance(getattr(choice, "fast", None), bool):
        yield
        return
    for fast in (True, False):
        choice.fast = fast
        yield


@every_pair(choice=networks.CHOICES, contexts=networks.CONTEXTS, activation=ACTIVATIONS)
def test_sums_to_one_and_log_prob_is_the_gathered_log_probs(choice, contexts, activation):
    model, trace, target = given(choice, contexts, activation)
    log_probs = model.output.log_probs(trace)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(7, ROWS).double())
    gathered = log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    weight = torch.rand(7, ROWS).double()
    for _ in forms(model.output.choice):
        for gradients in (True, False):
            with torch.set_grad_enabled(gradients):
                torch.testing.assert_close(model.output.log_prob(trace, target), gathered)
                total, nll = model.output.nll(model.output.contexts(trace), target, weight)
                torch.testing.assert_close(nll, -gathered)
                torch.testing.assert_close(total, -(weight * gathered).sum())
                assert not nll.requires_grad


@every_pair(
    choice=networks.CHOICES,
    contexts=networks.CONTEXTS,
    activation=slow_except(("sigsoftmax",), ("softmax", "sigsoftmax", "relu", "taylor")),
)
def test_fast_choices_are_the_plain_ones(choice, contexts, activation):
    """The gradient of every parameter; the plain form's are torch's own."""
    model, _, target = given(choice, contexts, activation)
    inputs, weight = torch.randint(WORDS, (7, ROWS)), torch.rand(7, ROWS).double()

    def gradients():
        trace, _ = model.trace(inputs, model.begin(ROWS))
        total, _ = model.output.nll(model.output.contexts(trace), target, weight)
        return torch.autograd.grad(3 * total, list(model.parameters()), materialize_grads=True)

    fast, *plain = [gradients() for _ in forms(model.output.choice)]
    for other in plain:
        torch.testing.assert_close(fast, other, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
@every_pair(choice=networks.CHOICES, contexts=networks.CONTEXTS)
def test_gradients_are_those_of_finite_differences(choice, contexts):
    model, trace, target = given(choice, contexts, "sigsoftmax")
    trace = trace._replace(levels=tuple(level[:2].detach().requires_grad_() for level in trace.levels))
    target, weight = target[:2], torch.rand(2, ROWS).double()
    levels = trace.levels if contexts == "doc" else trace.levels[2:]

    def total(*_):
        return model.output.nll(model.output.contexts(trace), target, weight)[0]

    def direct(*_):
        return model.output.log_prob(trace, target)

    inputs = [*levels, *model.output.parameters()]
    assert torch.autograd.gradcheck(total, inputs, fast_mode=True)
    assert torch.autograd.gradcheck(direct, inputs, fast_mode=True)


@every_value(choice=networks.CHOICES, contexts=("single", "doc"))
def test_symbols_are_drawn_as_often_as_they_are_probable(choice, contexts):
    """Pearson's statistic stays within five standard deviations of what it is for the true distribution."""
    model, draws = networks.choice_model(choice, contexts).eval(), 20_000
    log_probs, _ = model.step(torch.tensor([3]), model.begin(1))
    drawn = draw(log_probs.detach().expand(draws, -1), Sampling(), torch.Generator().manual_seed(0))
    expected = draws * log_probs[0].detach().exp()
    statistic = ((torch.bincount(drawn, minlength=WORDS) - expected).square() / expected).sum().item()
    assert statistic < WORDS - 1 + 5 * np.sqrt(2 * (WORDS - 1))


@each
def test_saved_and_loaded_it_is_the_same(choice, tmp_path):
    """Into a model that was begun from another seed, whose clusters may differ."""
    model, trace, target = given(choice, "mos")
    checkpoint.save(tmp_path / "model.safetensors", checkpoint.model_tensors(model), {})
    torch.manual_seed(99)
    twin = networks.choice_model(choice, "mos")
    checkpoint.load_model(twin, checkpoint.load(tmp_path / "model.safetensors")[0])
    assert torch.equal(twin.output.log_probs(trace), model.output.log_probs(trace))
    assert torch.equal(twin.output.log_prob(trace, target), model.output.log_prob(trace, target))


@everywhere
def test_float32_is_float64_rounded(choice, contexts):
    model, trace, target = given(choice, contexts, "sigsoftmax")
    exact = model.output.log_prob(trace, target)
    trace = trace._replace(levels=tuple(level.float() for level in trace.levels))
    for _ in forms(model.output.float().choice):
        rounded = model.output.log_prob(trace, target)
        assert rounded.dtype == torch.float32
        torch.testing.assert_close(rounded.double(), exact, rtol=1e-4, atol=1e-4)


@every_value(choice=networks.CHOICES, contexts=("doc", "single"))
def test_extreme_logits_stay_finite(choice, contexts):
    model, trace, target = given(choice, contexts)
    with torch.no_grad():
        for parameter in model.output.choice.parameters():
            parameter.mul_(1e4)
    trace = trace._replace(levels=tuple(level.detach() for level in trace.levels))
    total, nll = model.output.nll(model.output.contexts(trace), target, torch.ones(7, ROWS).double())
    total.backward()
    assert torch.isfinite(nll).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.output.parameters())


def values(model):
    """The parameters of a choice in NumPy, an encoder's matrix among them where it is tied."""
    return {name: tensor.detach().numpy() for name, tensor in model.output.choice.named_parameters()}


def printed(choice, model, x, activation):
    """What the paper says p is, given the context x."""
    kind, at, made = choice.split("-")[0], values(model), model.output.choice
    match kind:
        case "flat":
            return reference.distribution(activation, at["weight"] @ x + at["bias"])
        case "adaptive" if made.tied is not None:
            head, *ups = np.split(at["tied"], made.cutoffs)
            head_bias, *biases = np.split(at["bias"], [cutoff + len(ups) for cutoff in made.cutoffs])
            every = np.concatenate([head, at["head"]])
            same = [np.eye(len(x))] * len(ups)
            return reference.adaptive(x, every, head_bias, same, ups, activation, biases)
        case "adaptive":
            tails = range(len(made.up))
            downs, ups = ([at[f"{name}.{tail}"] for tail in tails] for name in ("down", "up"))
            return reference.adaptive(x, at["head"], at.get("bias", 0), downs, ups, activation)
        case "tree":
            number = len(made.cluster_weight)
            zero = {"bias": np.zeros(WORDS), "cluster_bias": np.zeros(number)}
            words = np.split(made.order.numpy(), made.starts[1:-1].numpy())
            cluster_of = np.array([next(c for c in range(number) if word in words[c]) for word in range(WORDS)])
            at = zero | at
            clusters = at["cluster_weight"], at["cluster_bias"]
            return reference.tree(x, at["weight"], at["bias"], *clusters, cluster_of, activation)
        case "rare":
            bias = at.get("outputs.bias", 0)
            rare = sum(count < (3 if choice == "rare-class" else 1) for count in networks.COUNTS)
            return reference.rare_class(x, at["outputs.weight"], bias, rare, activation)
        case "monotone":
            z = reference.monotone(at["weight"] @ x + at.get("bias", 0), at["raw_slope"], made.range)
            return reference.distribution(activation, z)
        case "mixtape":
            nodes, width = made.components - 1, at["gate_word"].shape[1]
            U = at["gate_hidden"].reshape(nodes, width, -1)
            own = [min(word, len(at["gate_word"]) - 1) for word in range(WORDS)]
            gate_bias = at["gate_bias"].reshape(-1, nodes)
            gates = [reference.mixtape_gates(x, U, at["gate_direct"], at["gate_word"][g], gate_bias[g]) for g in own]
            H = at["up"].reshape(made.components, -1, len(x))
            return reference.mixtape(x, H, at["weight"], at.get("bias", 0), gates, activation)


@pytest.mark.parametrize(
    "choice", [name for name in networks.CHOICES if name not in ("mixtape-8-tied", "mixtape-2-wide")]
)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_choice_is_the_papers_distribution(choice, activation):
    model = networks.choice_model(choice, activation=activation)
    x = torch.randn(5, 1, 4, dtype=torch.float64)
    ours = model.output.choice.log_probs(x).exp().squeeze(1).detach().numpy()
    for row, context in zip(ours, x[:, 0].numpy(), strict=True):
        np.testing.assert_allclose(row, printed(choice, model, context, activation), rtol=1e-9)


@pytest.mark.parametrize("choice", [name for name in networks.CHOICES if name.startswith("mixtape")])
def test_the_gates_of_a_word_sum_to_one(choice):
    made = networks.choice_model(choice).output.choice
    gates = made.gates(torch.randn(6, 4, dtype=torch.float64))
    torch.testing.assert_close(gates.sum(-1), torch.ones(gates.shape[:-1]).double())
    assert gates.shape[-1] == made.components


@pytest.mark.parametrize(("frequent", "gates"), [(3, 4), (WORDS - 1, WORDS), (WORDS, WORDS), (WORDS + 5, WORDS)])
def test_rare_words_share_a_gate_where_there_are_any(frequent, gates):
    choice = config.Mixtape(components=4, gate_size=2, frequent=frequent)
    recipe = config.Model(
        encoder=config.Lookup(size=4), core=config.Stack(sizes=(4,)), output=config.Output(choice=choice)
    )
    made = build_model(recipe, WORDS, networks.COUNTS).output.choice
    context = torch.randn(3, 1, made.gate_direct.shape[1])
    assert made.gates(context.squeeze(1)).shape == (3, gates, 4)
    assert (len(made.gate_word), len(made.gate_bias)) == (gates, 3 * gates)
    torch.testing.assert_close(made.log_probs(context).exp().sum(-1), torch.ones(3, 1))


def test_adaptive_softmax_is_torchs():
    """With the same matrices, torch.nn.AdaptiveLogSoftmaxWithLoss says the same."""
    theirs = nn.AdaptiveLogSoftmaxWithLoss(8, 60, [10, 30], div_value=2.0).double()
    ours = AdaptiveChoice(config.Adaptive(cutoffs=(10, 30), div_value=2.0), Surroundings(8, 60)).double()
    with torch.no_grad():
        ours.head.copy_(theirs.head.weight)
        for tail, (down, up) in enumerate(theirs.tail):
            ours.down[tail].copy_(down.weight)
            ours.up[tail].copy_(up.weight)
    x, target = torch.randn(50, 8, dtype=torch.float64), torch.randint(60, (50,))
    torch.testing.assert_close(ours.log_probs(x.unsqueeze(1)).squeeze(1), theirs.log_prob(x))
    torch.testing.assert_close(ours.log_prob(x.unsqueeze(1), target).squeeze(1), theirs(x, target).output)


def test_a_bend_begins_as_the_identity_and_always_rises():
    made = networks.choice_model("monotone").output.choice
    z = torch.linspace(-9, 9, 200, dtype=torch.float64)
    assert (made.bend(z).diff() > 0).all()
    nn.init.constant_(made.raw_slope, np.log(np.e - 1))
    torch.testing.assert_close(made.bend(z), z)
    broken = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30], dtype=torch.float64)
    torch.testing.assert_close(made.bend(broken), broken, equal_nan=True)


@pytest.mark.parametrize("choice", ["monotone", "mixtape", "adaptive", "tree"])
def test_log_probs_are_not_bound_to_the_rank_of_softmax(choice):
    """Their scores are no linear function of the context: the log-output matrix exceeds rank D + 2."""
    made = networks.choice_model(choice, size=2).output.choice
    contexts = 3 * torch.randn(60, 1, 2, dtype=torch.float64)
    singular = torch.linalg.svdvals(made.log_probs(contexts).squeeze(1).detach())
    assert (singular > 1e-9 * singular[0]).sum() > 4


@each
def test_cost_is_that_of_the_products(choice):
    """By torch's own count, over targets of the frequency given."""
    made, target = networks.choice_model(choice).output.choice, torch.randint(WORDS, (40,)).clamp(max=10)
    with FlopCounterMode(display=False) as counter:
        made.log_prob(torch.randn(40, 1, 4, dtype=torch.float64), target)
    cost = made.multiply_adds(torch.bincount(target, minlength=WORDS) / 40)
    assert cost == pytest.approx(counter.get_total_flops() / 2 / 40, rel=1e-6)


@pytest.mark.parametrize("choice", ["flat", "adaptive-tied", "adaptive-bias"])
@pytest.mark.parametrize("activation", ["softmax", "sigsoftmax", "sigmoid", "softplus", "relu"])
def test_biases_begin_at_the_frequencies_of_the_words(choice, activation):
    """Contexts of zeros then give them; words of a tail without biases of its own are equally frequent."""
    model = networks.choice_model(choice, activation=activation).output.choice
    frequency = unigram(WORDS, networks.COUNTS)
    counts = np.array(networks.COUNTS) + 1
    np.testing.assert_allclose(frequency.exp().numpy(), counts / counts.sum())
    model.begin_at(frequency)
    found = model.log_probs(torch.zeros(1, 1, 4, dtype=torch.float64)).exp()[0, 0].detach().numpy()
    if choice == "adaptive-bias":
        counts = np.concatenate([counts[:3], np.full(WORDS - 3, counts[3:].mean())])
    np.testing.assert_allclose(found, counts / counts.sum(), rtol=1e-6)


@pytest.mark.parametrize("activation", ["sigsoftmax", "sigmoid", "softplus", "relu"])
def test_biases_give_frequent_words_of_many_their_frequency(activation):
    frequency = unigram(20_000, [400_000, 30_000, *[1] * 19_998])
    found = log_g(biases_of(frequency, activation), activation).log_softmax(-1)
    np.testing.assert_allclose(found.exp().numpy(), frequency.exp().numpy(), rtol=1e-6)


@pytest.mark.parametrize("activation", ["spherical", "taylor"])
def test_activations_that_are_not_monotone_have_no_such_biases(activation):
    with pytest.raises(UserError, match=activation):
        networks.choice_model("flat", activation=activation).output.choice.begin_at(unigram(WORDS, None))


@pytest.mark.parametrize("choice", ["tree", "rare-class-none", "mixtape", "adaptive"])
def test_a_choice_without_biases_of_words_cannot_begin_at_their_frequencies(choice):
    with pytest.raises(UserError, match="output_bias"):
        networks.choice_model(choice).output.choice.begin_at(unigram(WORDS, None))


@pytest.mark.parametrize("words", [networks.COUNTS, None])
def test_a_recipe_begins_at_the_frequencies_of_the_words(words):
    recipe = config.Model(
        encoder=config.Lookup(size=4),
        core=config.Stack(sizes=(4,)),
        initialisation=config.Initialisation(output_bias="unigram"),
    )
    bias = build_model(recipe, WORDS, words).output.choice.bias
    torch.testing.assert_close(bias.detach().double(), unigram(WORDS, words), rtol=1e-6, atol=1e-6)


def test_the_words_of_a_tied_adaptive_softmax_are_as_wide_as_contexts():
    recipe = config.Model(
        encoder=config.Lookup(size=4),
        core=config.Stack(sizes=(3,)),
        output=config.Output(choice=config.Adaptive(cutoffs=(4,), tied=True)),
    )
    with pytest.raises(UserError, match="contexts as wide"):
        build_model(recipe, WORDS)
    with pytest.raises(ValueError, match="div_value"):
        config.Adaptive(cutoffs=(4,), tied=True, div_value=4.0)


@pytest.mark.parametrize("tied", [True, False])
def test_without_cutoffs_the_output_is_cheapest(tied):
    def made(cutoffs):
        recipe = config.Model(
            encoder=config.Lookup(size=16),
            core=config.Stack(sizes=(16,)),
            output=config.Output(choice=config.Adaptive(cutoffs=cutoffs, tied=tied)),
        )
        return build_model(recipe, WORDS, networks.COUNTS).output.choice

    frequency = unigram(WORDS, networks.COUNTS).exp()
    # Without the projections of a narrow tail, which the choice of the cut-off leaves out.
    costs = [
        made((cut,)).multiply_adds(frequency) - (0 if tied else 64 * frequency[cut:].sum()) for cut in range(1, WORDS)
    ]
    assert made(None).cutoffs == (int(np.argmin(costs)) + 1,)


@pytest.mark.parametrize("tied", [True, False])
def test_an_adaptive_softmax_needs_a_head_and_a_tail(tied):
    choice = config.Adaptive(tied=tied)
    recipe = config.Model(
        encoder=config.Lookup(size=4), core=config.Stack(sizes=(4,)), output=config.Output(choice=choice)
    )
    with pytest.raises(UserError, match=r'"adaptive" parts a vocabulary .* has 1 symbol; use the kind "flat"'):
        build_model(recipe, 1)
    assert build_model(recipe, 2).output.choice.cutoffs == (1,)


def test_gates_of_a_single_context_are_those_of_many():
    choice = networks.choice_model("mixtape").output.choice
    contexts = torch.randn(3, 2, 4, dtype=torch.float64)
    torch.testing.assert_close(choice.gates(contexts[1, 0]), choice.gates(contexts)[1, 0])
