"""Singular values of the log-probabilities: those of the explicit matrix, and the bound that only softmax obeys."""

import numpy as np
import pytest
import torch

from elman.analysis.rank import (
    Spectrum,
    _rank,
    find_rank,
    log_prob_rows,
    numerical_rank,
    rank_bound,
    spectrum,
    threshold,
)
from elman.analysis.singular_values import exact, gram, randomised, regrouped
from elman.errors import UserError
from support import networks
from support.pairwise import every_pair

WORDS = 30
TOKENS = np.random.default_rng(0).integers(0, WORDS, 150)
METHODS = ("gram", "exact", "randomised")


def explicit(model, tokens):
    """Token by token through `step`, [T, V]."""
    rows, state, before = [], model.begin(1), 0
    with torch.no_grad():
        for token in tokens:
            row, state = model.step(torch.tensor([before]), state)
            rows.append(row[0].double().numpy())
            before = int(token)
    return np.stack(rows)


@pytest.mark.slow
@every_pair(method=METHODS, tokens=[TOKENS, TOKENS[:20], TOKENS[:WORDS]], contexts=["single", "doc"])
def test_values_are_those_of_the_explicit_matrix(method, tokens, contexts):
    model = networks.model(contexts, "sigsoftmax", words=WORDS)
    found = spectrum(model, tokens, 0, method=method)
    expected = np.linalg.svd(explicit(model, tokens), compute_uv=False)
    assert found.singular_values.shape == expected.shape
    assert np.abs(found.singular_values - expected).max() <= found.error
    assert found.error < 1e-6 * expected[0]
    assert (found.num_words, found.num_tokens, found.dtype, found.method) == (WORDS, len(tokens), "float64", method)


@pytest.mark.slow
@pytest.mark.parametrize("contexts", ["single", "mos"])
def test_rows_do_not_depend_on_the_windows(contexts, monkeypatch):
    model = networks.model(contexts, words=WORDS)
    expected = explicit(model, TOKENS)
    for elements in (1, 700, 1 << 24):
        monkeypatch.setattr("elman.analysis.rank._ELEMENTS", elements)
        blocks = list(log_prob_rows(model, TOKENS, 0))
        assert len(blocks) > 1 or elements == 1 << 24
        np.testing.assert_allclose(torch.cat(blocks).numpy(), expected, rtol=1e-10)


def test_streams_read_every_token_once():
    model = networks.model(words=WORDS)
    rows = torch.cat(list(log_prob_rows(model, TOKENS, 0, streams=4)))
    assert rows.shape == (len(TOKENS), WORDS)
    np.testing.assert_allclose(rows.exp().sum(-1).numpy(), 1.0)
    np.testing.assert_allclose(rows[0].numpy(), explicit(model, TOKENS[:1])[0])


@pytest.mark.parametrize(("offset", "beyond"), [("bias", 2), ("none", 1), ("shift", 1)])
def test_softmax_has_exactly_the_rank_of_its_bound(offset, beyond):
    model = networks.model(words=WORDS, size=6, offset=offset)
    assert rank_bound(model) == 6 + beyond
    assert numerical_rank(spectrum(model, TOKENS, 0, method="exact")) == 6 + beyond


def test_a_mixture_of_one_softmax_is_bound_too():
    model = networks.model("mos", words=WORDS)
    model.output.contexts.heads = {2: 1}
    assert rank_bound(model) == 4 + 2


@pytest.mark.parametrize(
    ("contexts", "activation"),
    [("single", "sigsoftmax"), ("single", "sigmoid"), ("single", "softplus"), ("mos", "softmax"), ("doc", "softmax")],
)
def test_the_others_exceed_it(contexts, activation):
    model = networks.model(contexts, activation, words=WORDS)
    assert rank_bound(model) is None
    assert numerical_rank(spectrum(model, TOKENS, 0, method="exact")) > 4 + 2


def test_float32_outputs_obey_the_bound_under_their_own_threshold():
    model = networks.model(words=WORDS, size=6).float()
    found = spectrum(model, TOKENS, 0, method="gram")
    assert found.dtype == "float32"
    assert threshold(found) == pytest.approx(np.sqrt(WORDS + len(TOKENS) + 1) / 2 * found.singular_values[0] * 2.0**-23)
    assert numerical_rank(found) == 8
    assert numerical_rank(found, eps=1.0) == 0


def test_what_the_method_cannot_tell_is_not_counted():
    model = networks.model(words=WORDS, size=6)
    assert numerical_rank(spectrum(model, TOKENS, 0, method="gram")) <= 8


def test_ranks_are_found_at_a_tenth_to_a_thousand_epsilons():
    """The mixture's values fall gently, so that each threshold has a rank of its own."""
    model = networks.model("mos", words=WORDS).float()
    found = spectrum(model, TOKENS, 0, method="exact")
    finding = find_rank(model, found)
    factors = [0.1, 1.0, 10.0, 100.0, 1000.0]
    assert [one.factor for one in finding.sensitivity] == factors
    assert [one.rank for one in finding.sensitivity] == [numerical_rank(found, at * 2.0**-23) for at in factors]
    assert (finding.size, finding.softmax_bound, finding.bound) == (4, 6, None)


def test_max_tokens_takes_the_beginning():
    model = networks.model(words=WORDS)
    calls = []
    found = spectrum(model, TOKENS, 0, max_tokens=40, advance=lambda *progress: calls.append(progress))
    assert found.num_tokens == 40
    assert calls[-1] == (40, 40)
    np.testing.assert_array_equal(found.singular_values, spectrum(model, TOKENS[:40], 0).singular_values)


def decaying(rows, columns, rate):
    draw = np.random.default_rng(1)
    left = np.linalg.qr(draw.normal(size=(rows, columns)))[0]
    right = np.linalg.qr(draw.normal(size=(columns, columns)))[0]
    return torch.tensor(left * 100.0 * np.exp(-rate * np.arange(columns)) @ right.T)


@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_leading_values_lie_within_the_stated_error(rate):
    matrix = decaying(500, 200, rate)
    found = randomised(lambda: iter(matrix.split(37)), 500, 200, count=20)
    true = 100.0 * np.exp(-rate * np.arange(20))
    assert len(found.values) == 20
    assert (true - found.values.numpy() <= found.error).all()
    assert (found.values.numpy() <= true * (1 + 1e-12)).all()


def test_the_error_is_the_bound_of_the_ten_probes():
    """Halko et al. 2011, eq. 4.3: ||A - A Q Q'|| <= 10 sqrt(2 / pi) max ||(A - A Q Q') w_i||, ten Gaussian w_i."""
    matrix, draw = decaying(200, 100, 0.05), torch.Generator().manual_seed(0)
    start, probes = (torch.randn(*shape, generator=draw, dtype=torch.float64) for shape in ((200, 32), (100, 10)))
    basis = torch.linalg.qr(matrix.T @ (matrix @ torch.linalg.qr(matrix.T @ start).Q)).Q
    rest = 10 * np.sqrt(2 / np.pi) * (matrix - matrix @ basis @ basis.T).matmul(probes).norm(dim=0).max().item()
    smallest = torch.linalg.svdvals(matrix @ basis)[19].item()
    found = randomised(lambda: iter([matrix]), 200, 100, count=20)
    assert found.error == pytest.approx(np.hypot(smallest, rest) - smallest, rel=1e-6)
    assert np.linalg.norm(matrix - matrix @ basis @ basis.T, 2) < rest


def test_fewer_values_than_there_are_is_a_lower_bound():
    model = networks.model("mos", words=WORDS)
    found = spectrum(model, TOKENS, 0, method="randomised", num_values=5)
    assert len(found.singular_values) == 5
    assert numerical_rank(found, eps=0.0) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("method", [gram, exact])
def test_no_method_holds_the_matrix(method):
    """What is asked for is given once and let go: at most two blocks are alive."""
    import gc
    import weakref

    alive: list[weakref.ref] = []

    def blocks():
        for _ in range(12):
            gc.collect()
            assert sum(ref() is not None for ref in alive) <= 2
            block = torch.randn(1024, 10, dtype=torch.float64)
            alive.append(weakref.ref(block))
            yield block

    method(blocks, 12 * 1024, 10)


@pytest.mark.parametrize("size", [1, 4, 10, 100])
def test_regrouping_keeps_the_rows(size):
    matrix = torch.randn(23, 3)
    parts = list(regrouped(iter(matrix.split([5, 1, 10, 7])), size))
    assert torch.cat(parts).equal(matrix.double())
    assert all(len(part) == size for part in parts[:-1])


def test_rank_of_a_spectrum_by_hand():
    found = Spectrum(np.array([2.0, 1.0, 1e-12]), 3, 5, "float64", "exact", 1e-15)
    assert threshold(found) == pytest.approx(1.5 * 2.0 * 2.0**-52)
    assert numerical_rank(found) == 3
    assert numerical_rank(found, eps=1e-6) == 2


@pytest.mark.parametrize(("error", "at_least"), [(0.5, False), (0.9, True)])
def test_a_value_that_may_be_too_small_makes_a_lower_bound(error, at_least):
    found = Spectrum(np.array([9.0, 8.0, 0.2]), 60, 40, "float64", "randomised", error)
    assert _rank(found, eps=1 / threshold(found, eps=1.0)) == (2, at_least)


def test_a_broken_model_has_no_rank():
    model = networks.model(words=WORDS)
    with torch.no_grad():
        next(model.parameters()).fill_(torch.nan)
    with pytest.raises(UserError, match="not finite"):
        spectrum(model, TOKENS, 0)
