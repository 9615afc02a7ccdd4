"""sLSTM and the cells with matrices as states against NumPy transcriptions, and their chunked forms."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.network.cells.cell import unroll
from elman.network.cores.layer import Layer
from elman.network.fast import chunked
from reference import recurrences as reference
from support import networks

INPUTS, SIZE, STEPS = 3, 4, 6


def arrays(w):
    """The arrays by their names, and `b`, zeros where there is no bias."""
    named = SimpleNamespace(**{name: part.detach().numpy() for name, part in w.tensors().items()})
    named.b = np.zeros(len(w.weight_ih)) if w.bias_ih is None else w.bias_ih.detach().numpy()
    return named


def heads_of(x, heads):
    return x.reshape(len(x), heads, -1)


def each_head(formula, *parts):
    """The formula of one head of one sequence, for all: arrays [B, heads, ...] to arrays of the same kind."""
    rows, heads = parts[0].shape[:2]
    found = [[formula(*(part[b, h] for part in parts)) for h in range(heads)] for b in range(rows)]
    return [np.array([[one[place] for one in row] for row in found]) for place in range(len(found[0][0]))]


def slstm(w, record, x, h, c, n, m):
    """The unscaled c and n are those of the state times e^m."""
    a = arrays(w)
    W, b, R = a.weight_ih, a.b, a.weight_hh
    d = 0 * b if w.bias_hh is None else w.bias_hh.detach().numpy()
    R = R.reshape(4, record.heads, SIZE // record.heads, -1)
    gates = [part + reference.blocks(block, h) for part, block in zip(np.split(x @ W.T + b + d, 4, 1), R, strict=True)]
    h, c, n = reference.slstm(*gates, record.forget == "exponential", c * np.exp(m), n * np.exp(m))
    first = not m.any()
    kept = gates[1] if record.forget == "exponential" else reference.log_sigm(gates[1])
    m = gates[0] if first else np.maximum(kept + m, gates[0])
    return h, c * np.exp(-m), n * np.exp(-m), m


def mlstm(w, record, x, _, C, n, m, *before):
    a = arrays(w)
    W, b, W_if, b_if, heads = a.weight_ih, a.b, a.if_weight, a.if_bias, record.heads
    q, k, v, o = np.split(x @ W.T + b, 4, axis=1)
    if before:
        mixed, after = convolved(a.conv_weight, x, before[0], a.conv_bias)
        q, k = np.split(mixed @ W[: 2 * SIZE].T + b[: 2 * SIZE], 2, axis=1)
        before = (after,)
    i, f = np.split(x @ W_if.T + b_if, 2, axis=1)
    q, k, v = (heads_of(part, heads) for part in (q, k, v))
    size = np.exp(m)[..., None]
    h, C, n = each_head(reference.mlstm_head, q, k, v, i, f, C.swapaxes(2, 3) * size[..., None], n * size)
    if record.head_norm:
        h = reference.norm(h) * heads_of(a.norm_weight[None], heads)
    m = np.maximum(reference.log_sigm(f) + m, i)
    size = np.exp(-m)[..., None]
    return reference.sigm(o) * h.reshape(len(x), -1), C.swapaxes(2, 3) * size[..., None], n * size, m, *before


def convolved(kernel, now, before, bias=0.0):
    window = np.concatenate([before, now[:, None]], axis=1)
    return reference.silu(reference.convolution(kernel, window.transpose(1, 0, 2)) + bias), window[:, 1:]


def mamba2(w, record, x, _, S, before):
    a = arrays(w)
    W, b, dt_bias, A_log, skip, W_bcd = a.weight_ih, a.b, a.dt_bias, a.A_log, a.D, a.bcdt_proj
    kernel, bias, scale, out = a.conv_weight, a.conv_bias, a.norm_weight, a.out_proj
    heads, n, rows = record.heads, record.states, len(x)
    u, z = np.split(x @ W.T + b, 2, axis=1)
    bcd = x @ W_bcd.T
    mixed, before = convolved(kernel, np.concatenate([u, bcd[:, : 2 * n]], axis=1), before, bias)
    step = reference.softplus(bcd[:, 2 * n :] + dt_bias)
    u, B, C = heads_of(mixed[:, : u.shape[1]], heads), mixed[:, -2 * n : -n], mixed[:, -n:]
    shared = [np.repeat(part[:, None], heads, axis=1) for part in (B, C)]
    numbers = [np.broadcast_to(part, (rows, heads)) for part in (-np.exp(A_log), skip)]
    y, S = each_head(reference.ssd_head, u, *shared, step, *numbers, S)
    return (reference.rms_norm(y.reshape(rows, -1) * reference.silu(z)) * scale) @ out.T, S, before


def deltanet(w, record, x, _, S, before):
    a = arrays(w)
    W, b, W_g, kernel, scale, out = a.weight_ih, a.b, a.ba_proj, a.conv_weight, a.norm_weight, a.out_proj
    heads, rows = record.heads, len(x)
    sums = x @ W.T + b
    mixed, before = convolved(kernel, sums[:, : 3 * SIZE], before)
    q, k, v = (heads_of(part, heads) for part in np.split(mixed, 3, axis=1))
    q, k = (part / np.sqrt((part**2).sum(-1, keepdims=True) + 1e-6) for part in (q, k))
    gates = x @ W_g.T
    beta = reference.sigm(gates[:, :heads]) * (2 if record.negative_eigenvalues else 1)
    g = -np.exp(a.A_log) * reference.softplus(gates[:, heads:] + a.dt_bias) if record.gated else 0 * beta
    y, S = each_head(reference.delta_head, q, k, v, beta, g, S.swapaxes(2, 3))
    y = (reference.rms_norm(y) * scale).reshape(rows, -1) * reference.silu(sums[:, 3 * SIZE :])
    return y @ out.T, S.swapaxes(2, 3), before


def rwkv7(w, record, x, _, before, S):
    n = arrays(w)
    W, b, xi, alpha, rho, means = n.weight_ih, n.b, n.k_k, n.k_a, n.r_k, n.mix
    u_w, v_w, d, u_a, v_a, a_0, u_g, v_g = n.w1, n.w2, n.w0, n.a1, n.a2, n.a0, n.g1, n.g2
    scale, shift, out = n.ln_weight, n.ln_bias, n.out_proj
    heads, rows = record.heads, len(x)
    x_r, x_w, x_k, x_v, x_a, x_g = (x + (before - x) * mean for mean in means)
    r, k, v = (
        part @ W_j.T + b_j for part, W_j, b_j in zip((x_r, x_k, x_v), np.split(W, 3), np.split(b, 3), strict=True)
    )
    decay = np.exp(-np.exp(-0.5) * reference.sigm(np.tanh(x_w @ u_w.T) @ v_w.T + d))
    a = reference.sigm(x_a @ u_a.T @ v_a.T + a_0)
    g = reference.sigm(x_g @ u_g.T) @ v_g.T
    kappa = heads_of(k * xi, heads)
    kappa = kappa / np.linalg.norm(kappa, axis=-1, keepdims=True)
    k = k * (1 + (a - 1) * alpha)
    r, decay, k, v, a = (heads_of(part, heads) for part in (r, decay, k, v, a))
    y, S = each_head(reference.rwkv7_head, r, decay, k, v, kappa, a, S.swapaxes(2, 3))
    bonus = (r * heads_of(rho[None], heads) * k).sum(-1, keepdims=True) * v
    y = reference.norm(y, 64e-5).reshape(rows, -1) * scale + shift + bonus.reshape(rows, -1)
    return (g * y) @ out.T, x, S.swapaxes(2, 3)


def local_attention(w, record, x, _, keys, values, there):
    """The times of what is kept are counted from the present, 0."""
    named = arrays(w)
    W, b, out = named.weight_ih, named.b, named.out_proj
    q, k, v = np.split(x @ W.T + b, 3, axis=1)
    keys, values = np.concatenate([keys, k[:, None]], axis=1), np.concatenate([values, v[:, None]], axis=1)
    there = np.concatenate([there, np.ones((len(x), 1))], axis=1)
    rows = []
    for row in range(len(x)):
        (seen,) = np.nonzero(there[row] > 0)
        parts = zip(*(np.split(part, record.heads, axis=-1) for part in (q[row], keys[row], values[row])), strict=True)
        heads = [reference.attention_head(one, K[seen], V[seen], 0, seen - record.window + 1) for one, K, V in parts]
        rows.append(np.concatenate(heads))
    return np.array(rows) @ out.T, keys[:, 1:], values[:, 1:], there[:, 1:]


TRANSCRIPTIONS = {
    "slstm": slstm,
    "slstm-exponential": slstm,
    "mlstm": mlstm,
    "mlstm-without-norm": mlstm,
    "mlstm-convolution": mlstm,
    "mamba2": mamba2,
    "deltanet": deltanet,
    "deltanet-negative": deltanet,
    "rwkv7": rwkv7,
    "local-attention": local_attention,
    "attention-to-two": local_attention,
}


def first_state(cell, inputs=INPUTS, rows=2, dtype=torch.float64):
    return tuple(torch.zeros(rows, *shape, dtype=dtype) for shape in cell.shapes(inputs, SIZE))


@pytest.mark.parametrize("name", TRANSCRIPTIONS)
def test_step_and_sequence_are_the_papers_equations(name):
    """From the first state, and again from the one that was reached."""
    for biases in (0, 1, 2):
        assert_equations(name, biases)


def assert_equations(name, biases):
    cell, record = networks.CELLS[name], networks.CELL_RECORDS[name]
    w = networks.weights(cell, biases=biases)
    state = first_state(cell)
    expected = tuple(part.numpy() for part in state)
    for _ in range(2):
        xs = torch.randn(STEPS, 2, INPUTS, dtype=torch.float64)
        found = [cell.scan(w, xs, state), unroll(cell.step, w, xs, state)]
        outputs = []
        for x in xs.numpy():
            expected = TRANSCRIPTIONS[name](w, record, x, *expected)
            outputs.append(expected[0])
        for ours, after in found:
            np.testing.assert_allclose(ours.detach().numpy(), outputs, rtol=1e-10, atol=1e-11)
            for part, value in zip(after, expected, strict=True):
                np.testing.assert_allclose(part.detach().numpy(), value, rtol=1e-10, atol=1e-11)
        state = tuple(part.detach() for part in found[0][1])


@pytest.mark.parametrize("name", [name for name in TRANSCRIPTIONS if not name.startswith("slstm")])
def test_chunks_of_a_long_sequence_are_the_loop(name, monkeypatch):
    """More steps than a chunk has: values and the gradients of inputs, weights and state, within 1e-10."""
    monkeypatch.setattr(chunked, "LENGTH", 16)
    cell = networks.CELLS[name]
    w, state = networks.weights(cell), networks.state(cell)
    xs = torch.randn(37, 2, INPUTS, dtype=torch.float64, requires_grad=True)
    inputs = [xs, *state, *w.tensors().values()]
    pull = torch.randn(37, 2, SIZE, dtype=torch.float64)

    def results(run):
        outputs, after = run(w, xs, state)
        loss = (pull * outputs).sum() + sum(part.sin().sum() for part in after)
        gradients = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
        return [outputs, *after, *gradients]

    for one, other in zip(results(cell.scan), results(lambda *given: unroll(cell.step, *given)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10 * max(1.0, other.abs().max().item()))


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("length", [1, 3, 16])
def test_chunks_of_any_length_are_the_recurrence(length, per_row):
    rows, columns, steps = 3, 2, 10
    q, k, a, b = torch.randn(4, steps, 2, 2, rows, dtype=torch.float64)
    v, state = torch.randn(steps, 2, 2, columns, dtype=torch.float64), torch.randn(2, 2, rows, columns).double()
    log_w = -torch.rand(steps, 2, 2, rows if per_row else 1, dtype=torch.float64)
    S, outputs = state, []
    for t in range(steps):
        u = torch.einsum("bhk,bhkv->bhv", a[t], S)
        S = log_w[t].exp().unsqueeze(-1) * S + torch.einsum("bhk,bhv->bhkv", b[t], u)
        S = S + torch.einsum("bhk,bhv->bhkv", k[t], v[t])
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[t], S))
    found, after = chunked.scan(q, k, v, log_w, state, (a, b), length)
    torch.testing.assert_close(found, torch.stack(outputs), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(after, S, rtol=1e-10, atol=1e-10)


def test_strong_decays_do_not_overflow():
    """A memory that is erased at every step: e^{-1000} a step, over more than one chunk, in float32."""
    q, k, v = torch.ones(3, 40, 1, 1, 2)
    log_w = torch.full((40, 1, 1, 1), -1000.0).requires_grad_()
    y, state = chunked.scan(q, k, v, log_w, torch.ones(1, 1, 2, 2), length=16)
    torch.testing.assert_close(y, torch.full_like(y, 2.0))
    (gradient,) = torch.autograd.grad(y.sum() + state.sum(), log_w)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("corrected", [False, True])
def test_a_weak_decay_after_strong_ones_keeps_its_digits(corrected):
    """Steps from 0 to 30 in float32, over two chunks: values and all gradients within a few roundings of float64.

    Sums of the decays reach hundreds, so that the difference of two of them would have errors of 1e-5.
    """
    torch.manual_seed(0)
    q, k, a, b = torch.randn(4, 60, 2, 2, 8)
    v, state = torch.randn(60, 2, 2, 8), torch.randn(2, 2, 8, 8)
    log_w = -30 * torch.rand(60, 2, 2, 1) * torch.rand(60, 2, 2, 1)
    a = torch.nn.functional.normalize(a, dim=-1)
    b = -torch.rand(60, 2, 2, 1) * log_w.exp() * a
    pull = torch.randn(60, 2, 2, 8)

    def results(dtype):
        given = [part.to(dtype).requires_grad_() for part in (q, k, v, log_w, state, *((a, b) if corrected else ()))]
        y, after = chunked.scan(*given[:5], tuple(given[5:]) or None)
        return [y, after, *torch.autograd.grad((pull * y).sum() + after.sin().sum(), given)]

    for found, exact in zip(results(torch.float32), results(torch.float64), strict=True):
        assert (found - exact).abs().max() <= 1e-6 * exact.abs().max()


@pytest.mark.parametrize("size", [-300.0, 300.0])
@pytest.mark.parametrize("name", ["slstm", "mlstm", "mlstm-without-norm"])
def test_gates_far_from_zero_give_finite_outputs_and_gradients(name, size):
    """e^300 and e^-300 are no numbers of float32."""
    torch.manual_seed(0)
    layer = Layer(networks.CELLS[name], INPUTS, SIZE)
    layer.initialise(config.Initialisation())
    with torch.no_grad():
        bias = layer.if_bias[: len(layer.if_bias) // 2] if name.startswith("mlstm") else layer.bias_ih[:SIZE]
        bias.fill_(size)
    for run in (layer.cell.scan, lambda *given: unroll(layer.cell.step, *given)):
        layer.zero_grad()
        outputs, after = run(layer.weights(), torch.randn(20, 2, INPUTS), layer.begin(2))
        outputs.square().sum().backward()
        assert all(part.isfinite().all() for part in (outputs, *after))
        assert all(parameter.grad.isfinite().all() for parameter in layer.parameters() if parameter.grad is not None)


def test_outputs_do_not_depend_on_the_stabiliser():
    """c, n and m of one memory may be scaled together."""
    for name, powers in (("slstm", (0, 1, 1)), ("mlstm", (0, 1, 1))):
        cell = networks.CELLS[name]
        w, (h, c, n, m) = networks.weights(cell), networks.state(cell)
        xs = torch.randn(STEPS, 2, INPUTS, dtype=torch.float64)
        shift = 0.7
        by = torch.tensor(-shift).double().exp()
        scaled = (h, c * by ** powers[1], n * by ** powers[2], m + shift)
        torch.testing.assert_close(cell.scan(w, xs, scaled)[0], cell.scan(w, xs, (h, c, n, m))[0])


def test_they_begin_as_published():
    torch.manual_seed(0)
    made = {}
    for name, record in {"mlstm": config.MLSTM(), "mamba2": config.Mamba2(heads=64), "rwkv7": config.RWKV7()}.items():
        made[name] = Layer(record, 32, 64)
        made[name].initialise(config.Initialisation())
    assert made["mlstm"].if_bias[4:].tolist() == [3.0, 4.0, 5.0, 6.0]
    assert not made["mlstm"].if_weight.any()
    a_log, skip = made["mamba2"].A_log, made["mamba2"].D
    step = torch.nn.functional.softplus(made["mamba2"].dt_bias)
    assert step.min() >= 0.001 * 0.999
    assert step.max() <= 0.1 * 1.001
    assert a_log.exp().min() >= 1
    assert a_log.exp().max() <= 16
    assert skip.eq(1).all()
    assert made["rwkv7"].mix[0, 0] == 1
    assert made["rwkv7"].mix[0, -1] == 0


HEADS = config.SLSTM, config.MLSTM, config.DeltaNet, config.RWKV7, config.Mamba2, config.LocalAttention


@pytest.mark.parametrize("record", HEADS)
def test_heads_that_do_not_divide_a_layer_are_one_line(record):
    with pytest.raises(UserError, match=r"model\.core\.cell\.heads = 3 does not divide a layer of (4|8) numbers"):
        Layer(record(heads=3), INPUTS, 4)


def test_attention_forgets_what_is_older_than_its_window():
    """A change of the input `window` steps ago changes nothing, one a step later does."""
    cell, window = networks.CELLS["local-attention"], networks.CELL_RECORDS["local-attention"].window
    w, state = networks.weights(cell), first_state(cell)
    xs = torch.randn(10, 2, INPUTS, dtype=torch.float64)
    other = xs.clone()
    other[2] += 1.0
    change = (cell.scan(w, xs, state)[0] - cell.scan(w, other, state)[0]).abs().amax((1, 2))
    assert change[2 : 2 + window].gt(1e-3).all()
    assert not change[:2].any()
    assert not change[2 + window :].any()


@pytest.mark.parametrize(
    "record",
    [
        config.MLSTM(heads=2, convolution=16),
        config.Mamba2(heads=2, convolution=16),
        config.DeltaNet(heads=2, convolution=16),
        config.RGLRU(heads=2, convolution=16),
    ],
)
def test_the_kernel_of_a_convolution_begins_so_that_variance_is_kept(record):
    torch.manual_seed(1)
    layer = Layer(record, 64, 64)
    layer.initialise(config.Initialisation())
    assert layer.conv_weight.shape[1] == 16
    assert layer.conv_weight.std().item() == pytest.approx(1 / 4, rel=0.05)


@pytest.mark.parametrize(
    ("record", "spreads"),
    [
        (config.RWKV7(rank=25), {"w2": 0.1 / 5, "a2": 0.1 / 5, "g2": 1 / 5, "out_proj": 1 / 8}),
        (config.Mamba2(expand=4), {"out_proj": 1 / 16}),
        (config.DeltaNet(), {"out_proj": 1 / 8}),
        (config.LocalAttention(), {"out_proj": 1 / 8}),
        (config.RGLRU(), {"gate_weight": 1 / 4, "out_weight": 1 / 8}),
        (config.LRU(states=100), {"B_re": 1 / 128**0.5, "B_im": 1 / 128**0.5, "C_re": 1 / 10, "C_im": 1 / 10}),
    ],
)
def test_matrices_begin_so_that_variance_is_kept(record, spreads):
    """By what they read; those of the rank of RWKV-7 that correct a bias begin at a tenth."""
    torch.manual_seed(1)
    layer = Layer(record, 64, 64)
    layer.initialise(config.Initialisation())
    found = {name: getattr(layer, name).std().item() for name in spreads}
    assert found == pytest.approx(spreads, rel=0.07)
