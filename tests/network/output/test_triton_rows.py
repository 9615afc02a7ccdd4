"""The Triton kernel in Triton's interpreter, against the plain formula."""

import subprocess
import sys

import pytest

pytest.importorskip("triton.language", reason="Triton's interpreter needs the package triton")


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    monkeypatch.setenv("ELMAN_TRITON", "1")


PROGRAM = """
import torch
from elman.network.output import fast_mixture, triton_rows
from elman.network.output.activation import log_g

torch.manual_seed(0)
triton_rows.BLOCK = 16
called = []
kernel = triton_rows.log_prob
triton_rows.log_prob = lambda *one, **how: called.append(how) or kernel(*one, **how)

for activation in triton_rows.ACTIVATIONS:
    context = (3 * torch.randn(7, 2, 5)).requires_grad_()
    prior = torch.randn(7, 2).log_softmax(1).requires_grad_()
    weight, bias = torch.randn(37, 5).requires_grad_(), torch.randn(37)
    bias[3], bias[4], bias[20] = 30.0, -300.0, 33.0
    bias.requires_grad_()
    target, each = torch.tensor([3, 4, 0, 36, 16, 15, 9]), torch.rand(7)
    leaves = (context, prior, weight, bias)

    found, nll = fast_mixture.mixture_nll(context, prior, weight, bias, target, each, activation)
    gradients = torch.autograd.grad(found, leaves)
    joint = log_g(context.double() @ weight.double().t() + bias.double(), activation).log_softmax(-1)
    chosen = joint.gather(2, target[:, None, None].expand(-1, 2, 1)).squeeze(2)
    plain = -(chosen + prior.double()).logsumexp(1)
    wanted = torch.autograd.grad((plain * each).sum(), leaves)
    torch.testing.assert_close(nll.double(), plain, rtol=1e-5, atol=1e-4)
    for one, other in zip(gradients, wanted):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        log_prob = fast_mixture.mixture_log_prob(context, prior, weight, bias, target, activation)
    torch.testing.assert_close(-log_prob, nll)
assert called == [{"derive": True}, {}] * 2, called
"""


COMPILATION = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from elman.network.output.triton_rows import BLOCK, _rows

types = {"z_rows": "*fp32", "targets": "*i64", "log_probs": "*fp32", "stride": "i32"}
chosen = {"num_symbols": 10_000, "sigsoftmax": True, "derive": True, "block": BLOCK}
source = ASTSource(_rows, types | dict.fromkeys(chosen, "constexpr"), chosen)
assert compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
"""


def test_the_kernel_compiles_without_a_gpu(monkeypatch, tmp_path):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    subprocess.run([sys.executable, "-W", "ignore", "-c", COMPILATION], check=True, timeout=120)


def test_values_and_gradients_of_a_mixture(monkeypatch):
    """In a process of its own, since the kernel is made for the interpreter when it is imported."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], check=True, timeout=120)
