"""Teacher forcing of Jordan's network, against a loop in which every step is given the truth."""

import pytest
import torch

from elman.data.batches import Batch
from elman.data.classic import classic_task
from elman.errors import UserError
from elman.objective.loss import Objective
from elman.study.lab.networks import build_network, learning_rule


@pytest.fixture
def jordan():
    torch.manual_seed(0)
    return build_network(classic_task("movement"), "jordan", 8).double()


def draw(seed, steps):
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = (torch.randint(18, (steps, 3), generator=generator) for _ in range(2))
    return Batch(inputs, targets)


def test_its_gradient_is_that_of_steps_that_are_given_the_truth(jordan):
    windows = draw(1, 4), draw(2, 3)
    learner = learning_rule("forced")
    state = learner.begin(jordan, 3)
    losses = []
    for window in windows:
        loss, state = learner(jordan, Objective(reduction="sum"), window, state)
        losses.append(loss.objective)
    found = [parameter.grad.clone() for parameter in jordan.parameters()]
    jordan.zero_grad()
    (context,), total = jordan.begin(3), 0
    for window in windows:
        for read, said in zip(window.inputs, window.targets, strict=True):
            log_probs, _ = jordan.log_probs(read[None], (context,))
            total = total - log_probs[0].gather(1, said[:, None]).sum() / 3  # the sum over steps, the mean of columns
            context = 0.5 * context
            context[range(3), said] += 1
    total.backward()
    torch.testing.assert_close(sum(losses), total.detach())
    for one, parameter in zip(found, jordan.parameters(), strict=True):
        torch.testing.assert_close(one, parameter.grad)
    torch.testing.assert_close(state[0], context)


def test_a_network_without_an_output_that_is_fed_back_is_refused():
    elman = build_network(classic_task("movement"), "elman", 8)
    with pytest.raises(UserError, match="only Jordan's network can"):
        learning_rule("forced").check(elman, 3)
