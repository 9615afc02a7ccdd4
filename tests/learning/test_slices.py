"""Slices of a batch: the gradient of the whole, whoever computes a slice, and masks of their own."""

import threading
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
import torch

from elman.data.batches import Batch
from elman.data.windows import Part
from elman.errors import UserError
from elman.evaluation.perplexity import Score
from elman.learning.bptt import WholeWindow
from elman.learning.gradient_norm import GradientNorm
from elman.learning.lookback import Attenuated, Lookback
from elman.learning.rtrl import RTRL
from elman.learning.slices import Slices, masks_of
from elman.learning.team import ALONE, Team
from elman.network.state import leaves, map_state
from elman.objective.loss import Loss, Objective
from elman.objective.penalties import Activation, TemporalActivation
from support import networks
from support.pairwise import every_pair

STEPS, ROWS, SEED = 5, 8, 7
PENALTIES = (Activation(weight=2.0), TemporalActivation(weight=1.0))
RULES = {
    "whole": WholeWindow(),
    "lookback": Lookback(2),
    "attenuated": Attenuated(0.5),
    "rtrl": RTRL(),
    "gradient norm": GradientNorm(WholeWindow(), 0.3),
}


class Thread(Team):
    """One of several teams in the threads of a process, which exchange tensors through a table."""

    def __init__(self, rank, size, table, barrier):
        self.rank, self.size, self.table, self.barrier = rank, size, table, barrier

    def exchanged(self, value):
        self.table[self.rank] = value
        self.barrier.wait()
        found = [self.table[rank] for rank in range(self.size)]
        self.barrier.wait()
        return found

    def add(self, tensors):
        distance = 1
        while distance < self.size:
            found = self.exchanged([tensor.clone() for tensor in tensors])
            for tensor, other in zip(tensors, found[self.rank ^ distance], strict=True):
                tensor.add_(other)
            distance *= 2

    def gather(self, tensor):
        return self.exchanged(tensor)


def window(masked=False, rows=ROWS):
    symbols = torch.randint(7, (STEPS + 1, rows))
    mask = torch.rand(STEPS, rows) < 0.6 if masked else None
    return Batch(symbols[:-1], symbols[1:], mask)


def gradient(slices, model, batch, rule=RULES["whole"], objective=None):
    """Loss, state after and gradients of a batch in slices, from the first state."""

    def learn(part, state):
        return rule(model, objective or Objective(PENALTIES), part, rule.begin(model, part.num_columns))

    parameters = list(model.parameters())
    loss, after = slices.gradient(learn, parameters, batch, None, 3)
    return loss, after, [parameter.grad.clone() for parameter in parameters]


def by_threads(count, size, model, batch):
    """What each of `size` teams finds: loss, gradients, and the state where every slice has columns."""
    table, barrier = {}, threading.Barrier(size, timeout=60)

    def one(rank):
        slices = Slices(count, SEED, Thread(rank, size, table, barrier))
        loss, after, found = gradient(slices, deepcopy(model), batch)
        return [*loss, *found, *(leaves(slices.whole(after)) if batch.num_columns >= count else ())]

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))


@every_pair(rule=RULES, count=[2, 3, 8], masked=[False, True], reduction=["mean", "sum"])
def test_slices_give_the_gradient_of_the_whole_batch(reduction, masked, count, rule):
    """Also where the columns cannot be shared out evenly, and where slices count different numbers of targets."""
    # Omega is a mean of ratios of errors, and errors of columns without targets are zero.
    model, batch = networks.model("doc"), window(masked and rule != "gradient norm")
    objective, learner = Objective(PENALTIES, reduction), RULES[rule]
    model.zero_grad()
    loss, after = learner(model, objective, batch, learner.begin(model, ROWS))
    wanted = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]
    sliced = gradient(Slices(count, SEED, ALONE), model, batch, learner, objective)
    for found, whole in zip(sliced[0], loss, strict=True):
        torch.testing.assert_close(found, whole.to(found.dtype))
    for found, whole in zip([*leaves(sliced[1]), *sliced[2]], [*leaves(after), *wanted], strict=True):
        torch.testing.assert_close(found, whole)


@pytest.mark.parametrize("rows", [8, 5, 3])
@pytest.mark.parametrize("size", [2, 4])
def test_teams_find_the_same_bits(size, rows):
    """Also where a slice has no columns, as in the last batch of an epoch."""
    model, batch = networks.model("doc").float(), window(masked=True, rows=rows)
    (alone,) = by_threads(8, 1, model, batch)
    for of_team in by_threads(8, size, model, batch):
        assert all(torch.equal(one, wanted) for one, wanted in zip(of_team, alone, strict=True))


def test_slices_are_added_as_a_balanced_tree():
    """Numbers of which every other order of addition has another rounding."""
    weight = torch.nn.Parameter(torch.zeros(1))
    parts = torch.tensor([1.0, 2.0**-24, 2.0**-24, -1.0, 1.0, 2.0**-23, 2.0**-24, 2.0**-24])
    nothing = Loss(*torch.zeros(4))

    def learn(part, state):
        weight.grad = parts[part.inputs[0, 0]].reshape(1)
        return nothing, None

    batch = Batch(torch.arange(8).repeat(2, 1), torch.zeros(2, 8, dtype=torch.long))
    Slices(8, SEED, ALONE).gradient(learn, [weight], batch, None, 0)
    pairs = parts.view(4, 2).sum(1)
    fours = pairs.view(2, 2)
    assert weight.grad == (fours[0, 0] + fours[0, 1]) + (fours[1, 0] + fours[1, 1])
    assert weight.grad != parts.cumsum(0)[-1]


def test_masks_belong_to_seed_step_and_slice():
    def drawn(*place):
        with masks_of(*place):
            return torch.rand(4).tolist()

    places = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0)]
    first = [drawn(*place) for place in places]
    torch.rand(3)
    assert [drawn(*place) for place in places] == first
    assert len({tuple(one) for one in first}) == len(places)


def test_a_step_in_slices_leaves_the_random_state_as_it_is():
    model, batch = networks.model(), window()

    def learn(part, state):
        torch.rand(9)
        return RULES["whole"](model, Objective(), part, model.begin(part.num_columns))

    before = torch.get_rng_state()
    Slices(4, SEED, ALONE).gradient(learn, list(model.parameters()), batch, None, 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_state_goes_on_from_slice_to_slice():
    model = networks.model()
    one, two = window(), window()
    slices = Slices(4, SEED, ALONE)
    _, state, _ = gradient(slices, model, one)

    def learn(part, before):
        return RULES["whole"](model, Objective(), part, before)

    _, after = slices.gradient(learn, list(model.parameters()), two, state, 4)
    _, wanted = RULES["whole"](model, Objective(), two, state)
    for found, whole in zip(leaves(after), leaves(wanted), strict=True):
        torch.testing.assert_close(found, whole)


def test_a_process_takes_its_rows_of_a_state():
    whole = (torch.arange(6.0).view(6, 1), torch.arange(12.0).view(6, 2))
    for size in (1, 2, 4):
        parts = [Slices(4, SEED, Thread(rank, size, {}, None)).own_rows(whole) for rank in range(size)]
        joined = map_state(lambda *rows: torch.cat(rows), *parts)
        assert all(torch.equal(found, leaf) for found, leaf in zip(leaves(joined), leaves(whole), strict=True))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_teams_share_a_validation(size):
    """Every part is asked for once, and the sum has the order of the parts, whoever computes them."""
    table, barrier, asked = {}, threading.Barrier(size, timeout=60), []
    sums = [0.1, 1e16, 3.3, -1e16, 0.7, 1e-9, 123.456, 0.2]

    def score(part):
        asked.append(part)
        return Score(sums[part.index], part.index)

    def one(rank):
        return Slices(8, SEED, Thread(rank, size, table, barrier)).mean_nll(score, torch.device("cpu"))

    with ThreadPoolExecutor(size) as pool:
        found = set(pool.map(one, range(size)))
    assert sorted(asked) == [Part(index, 8) for index in range(8)]
    assert found == {sum(sums) / 28}


def test_slices_that_a_team_cannot_share():
    with pytest.raises(UserError, match=r"training.slices = 6: 4 processes cannot share them"):
        Slices(6, SEED, Thread(0, 4, {}, None))
