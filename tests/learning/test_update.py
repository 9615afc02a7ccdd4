"""One training step: the order in which gradient, L1, clipping, optimiser, constraint and average act."""

import torch

from elman import config
from elman.data.batches import Batch
from elman.learning.averaging import Average
from elman.learning.bptt import WholeWindow
from elman.learning.optimisers import Optimiser
from elman.learning.progress import phases_of
from elman.learning.update import Update
from elman.network.state import leaves
from elman.objective.loss import Objective
from support import networks


class Halving:
    """A constraint that halves every weight."""

    def __init__(self, parameters):
        self.parameters = parameters

    def project(self):
        for parameter in self.parameters:
            parameter.data.mul_(0.5)


def step_of(**options):
    model = networks.model()
    optimiser = Optimiser(config.SGD(lr=1.0), list(model.parameters()))
    return Update(model, WholeWindow(), Objective(), optimiser, **options)


def window():
    symbols = torch.randint(7, (5, 3))
    return Batch(symbols[:-1], symbols[1:])


def copies(tensors):
    return [tensor.detach().clone() for tensor in tensors]


def test_l1_is_part_of_the_gradient_that_is_clipped():
    update, batch = step_of(clip=0.01, l1=0.3), window()
    parameters = update.optimiser.parameters
    plain, _ = Objective()(update.model, batch, update.model.begin(3))
    gradients = torch.autograd.grad(plain.objective, parameters)
    expected = [gradient + 0.3 * parameter.sign() for gradient, parameter in zip(gradients, parameters, strict=True)]
    norm = torch.cat([gradient.flatten() for gradient in expected]).norm()
    update.gradient(batch)
    torch.testing.assert_close(update.clip(), norm)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient * 0.01 / norm, rtol=1e-4, atol=1e-9)


def test_the_average_holds_projected_weights():
    update = step_of()
    parameters = update.optimiser.parameters
    update.constraint, update.average = Halving(parameters), Average(parameters)
    batch, before = window(), copies(parameters)
    update.gradient(batch)
    gradients = copies(parameter.grad for parameter in parameters)
    update.apply(0.1)
    for parameter, value, old, gradient in zip(parameters, update.average.values, before, gradients, strict=True):
        torch.testing.assert_close(parameter.detach(), (old - 0.1 * gradient) / 2)
        assert torch.equal(value, parameter.detach())


def test_state_is_carried_and_can_be_dropped():
    update, batch = step_of(), window()
    update(batch, 0.0)
    after_one = copies(leaves(update.state))
    update(batch, 0.0)
    assert not torch.equal(next(leaves(update.state)), after_one[0])
    update.state = None
    update(batch, 0.0)
    torch.testing.assert_close(copies(leaves(update.state)), after_one)


def test_what_is_restored_is_copied():
    """The tensors of a file begin at any address, on which the rounding of products depends."""

    class Keeping(Halving):
        block = torch.ones(3)

        def tensors(self):
            return {"block": self.block}

        def restore(self, tensors):
            self.block = tensors["block"]

    update = step_of()
    update.constraint = Keeping(update.optimiser.parameters)
    update.average = Average(update.optimiser.parameters)
    update(window(), 0.1)
    given = {name: tensor.clone() for name, tensor in update.tensors().items()}
    update.restore(given, 1)
    for name, tensor in update.tensors().items():
        assert torch.equal(tensor, given[name]), name
        assert tensor.data_ptr() != given[name].data_ptr(), name


def test_weights_and_their_averages_must_be_finite():
    for average in (False, True):
        update = step_of()
        update.average = Average(update.optimiser.parameters)
        assert update.is_finite()
        tensors = update.average.values if average else update.optimiser.parameters
        tensors[-1].data.view(-1)[-1] = float("inf")
        assert not update.is_finite()


def test_the_average_is_that_of_the_recipe():
    update = step_of()
    for averaging, newest in ((config.Immediate(), 1 / 4), (config.Polynomial(power=2), 1 / 2)):
        sgd = config.SGD(lr=1.0)
        update.begin_averaging(config.Training(averaging=averaging, optimiser=sgd, epochs=1, batch_size=2))
        assert update.average.share(4) == newest
        assert not update.average.left
    averaging = config.NonMonotone(compensated=True)
    phase = config.Training(averaging=averaging, optimiser=sgd, epochs=1, fine_tune=config.FineTune(lr=1.0, epochs=1))
    for one in phases_of(phase):
        update.begin_averaging(one)
        assert update.average.left
