"""The mixture of a pen beside a NumPy transcription of Graves (2013), its integral and the moments of its draws."""

import numpy as np
import pytest
import torch

from elman import nn as enn

D, M, FLOOR = 4, 3, 0.1


def made(components=M):
    torch.manual_seed(4)
    output = enn.PenMixture(D, components, floor=FLOOR).double()
    with torch.no_grad():
        output.numbers.weight.normal_(0, 0.25)
        output.numbers.bias.normal_(0, 0.25)
    return output, torch.randn(5, D, dtype=torch.float64)


def parts(output, h):
    """Eqs 17 to 22, with the floor: weights, means, covariances, and the probability that the pen is lifted."""
    numbers = output.numbers.weight.detach().numpy() @ h + output.numbers.bias.detach().numpy()
    weight, mean, spread, correlation = np.split(numbers[:-1], [M, 3 * M, 5 * M])
    deviation, r = np.exp(spread).reshape(M, 2), np.tanh(correlation)
    covariances = []
    for (first, second), one in zip(deviation, r, strict=True):
        cross = one * first * second
        covariances.append(np.array([[first**2, cross], [cross, second**2]]) + FLOOR**2 * np.eye(2))
    return np.exp(weight) / np.exp(weight).sum(), mean.reshape(M, 2), covariances, 1 / (1 + np.exp(-numbers[-1]))


def transcription(output, h, point):
    """Eqs 23 to 25."""
    weights, means, covariances, lifted = parts(output, h)
    total = 0.0
    for weight, mean, covariance in zip(weights, means, covariances, strict=True):
        s1, s2 = np.sqrt(np.diag(covariance))
        r = covariance[0, 1] / (s1 * s2)
        x, y = (point[:2] - mean) / (s1, s2)
        z = x**2 + y**2 - 2 * r * x * y
        total += weight * np.exp(-z / (2 * (1 - r**2))) / (2 * np.pi * s1 * s2 * np.sqrt(1 - r**2))
    return total * (lifted if point[2] == 1 else 1 - lifted)


def test_density_is_that_of_the_paper():
    output, h = made()
    points = torch.cat([torch.randn(5, 2), torch.tensor([[0.0], [1], [1], [0], [1]])], 1).double()
    expected = [transcription(output, *(one.numpy() for one in row)) for row in zip(h, points, strict=True)]
    np.testing.assert_allclose(output.log_prob(h, points).exp().detach().numpy(), expected, rtol=1e-10)


def test_density_is_one_in_all():
    output, h = made()
    x, y, pen = torch.meshgrid(*[torch.linspace(-20, 20, 601).double()] * 2, torch.arange(2).double(), indexing="ij")
    points = torch.stack([x, y, pen], -1).view(-1, 3)
    density = output.log_prob(h[:1].expand(len(points), -1), points).exp()
    assert density.sum().item() * (40 / 600) ** 2 == pytest.approx(1, abs=1e-4)


def test_draws_have_the_moments_of_the_mixture():
    output, h = made()
    generator, number = torch.Generator().manual_seed(1), 40_000
    weights, means, covariances, lifted = parts(output, h[0].numpy())
    mean = weights @ means
    second = sum(w * (c + np.outer(m, m)) for w, m, c in zip(weights, means, covariances, strict=True))
    drawn = output.sample(h[:1].expand(number, -1), generator=generator).numpy()
    np.testing.assert_allclose(drawn[:, :2].mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(drawn[:, :2].T), second - np.outer(mean, mean), rtol=0.05, atol=0.05)
    assert drawn[:, 2].mean() == pytest.approx(lifted, abs=0.01)
    np.testing.assert_allclose(output.choice.mean(h[0]).detach().numpy(), [*mean, lifted])


def test_a_temperature_scales_covariances_and_at_zero_the_likeliest_is_drawn():
    output, h = made()
    with torch.no_grad():
        output.numbers.bias[1] = 100.0
    _, means, covariances, lifted = parts(output, h[0].numpy())
    drawn = output.sample(h[:1].expand(40_000, -1), 0.25, torch.Generator().manual_seed(1)).numpy()
    np.testing.assert_allclose(np.cov(drawn[:, :2].T), 0.25 * covariances[1], rtol=0.05, atol=0.02)
    odds = (lifted / (1 - lifted)) ** 4
    assert drawn[:, 2].mean() == pytest.approx(odds / (1 + odds), abs=0.01)
    np.testing.assert_allclose(output.sample(h[:1], 0).numpy()[0], [*means[1], lifted > 0.5])


def test_a_straight_line_has_a_finite_density():
    """Correlations of 1 and deviations of 0, which the floor bounds, in float32."""
    output = enn.PenMixture(D, 1, floor=FLOOR)
    with torch.no_grad():
        output.numbers.weight.zero_()
        output.numbers.bias.copy_(torch.tensor([0.0, 0, 0, 3, 3, 90, 0]))
    point = torch.tensor([[1.0, 1.0, 0.0]])
    s = np.exp(3.0)
    a, b = np.sqrt(s**2 + FLOOR**2), s * s / np.sqrt(s**2 + FLOOR**2)
    c = FLOOR * np.sqrt(FLOOR**2 + 2 * s**2) / a
    expected = -0.5 * ((1 / a) ** 2 + ((1 - b / a) / c) ** 2) - np.log(2 * np.pi * a * c) - np.log(2)
    assert output.log_prob(torch.zeros(1, D), point).item() == pytest.approx(expected, rel=1e-4)
    output.nll(torch.zeros(1, D), point).backward()
    assert output.numbers.bias.grad.isfinite().all()


def test_targets_and_arguments_are_checked():
    output, h = made()
    with pytest.raises(ValueError, match="a point whose last number is 0 or 1"):
        output.nll(h, torch.full((5, 3), 0.5))
    with pytest.raises(ValueError, match="components is 0"):
        enn.PenMixture(D, 0)
