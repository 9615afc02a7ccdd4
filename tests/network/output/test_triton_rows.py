"""The Triton kernel in Triton's interpreter, and on a GPU where there is one, against the plain formula."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch

from elman.network.fast import triton_rows

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="the kernel needs the package triton")


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    monkeypatch.setenv("ELMAN_TRITON", "1")


PROGRAM = """
import sys

import torch
from elman.network.fast import mixture, triton_rows
from elman.network.output.activation import log_g

torch.set_default_device(sys.argv[1])
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

    found, nll = mixture.nll(context, prior, weight, bias, target, each, activation)
    gradients = torch.autograd.grad(found, leaves)
    joint = log_g(context.double() @ weight.double().t() + bias.double(), activation).log_softmax(-1)
    chosen = joint.gather(2, target[:, None, None].expand(-1, 2, 1)).squeeze(2)
    plain = -(chosen + prior.double()).logsumexp(1)
    wanted = torch.autograd.grad((plain * each).sum(), leaves)
    torch.testing.assert_close(nll.double(), plain, rtol=1e-5, atol=1e-4)
    for one, other in zip(gradients, wanted):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        log_prob = mixture.log_prob(context, prior, weight, bias, target, activation)
    torch.testing.assert_close(-log_prob, nll)
assert called == [{"derive": True}, {}] * 2, called
"""


COMPILATION = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from elman.network.fast.triton_rows import BLOCK, _rows

types = {"z_rows": "*fp32", "targets": "*i64", "log_probs": "*fp32", "stride": "i32"}
chosen = {"num_symbols": 10_000, "sigsoftmax": True, "derive": True, "block": BLOCK}
source = ASTSource(_rows, types | dict.fromkeys(chosen, "constexpr"), chosen)
assert compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
"""


@needs_triton
def test_the_kernel_compiles_without_a_gpu(monkeypatch, tmp_path):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    subprocess.run([sys.executable, "-W", "ignore", "-c", COMPILATION], check=True, timeout=120)


@needs_triton
@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def test_values_and_gradients_of_a_mixture(monkeypatch, device):
    """In a process of its own, since the kernel is made for the interpreter, or for a GPU, when it is imported."""
    monkeypatch.setenv("TRITON_INTERPRET", "1" if device == "cpu" else "0")
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM, device], check=True, timeout=120)


USED = {
    ("1", False, None): True,
    ("0", True, "gcc"): False,
    (None, True, "gcc"): True,
    (None, True, None): False,
    (None, False, "gcc"): False,
}


@pytest.mark.parametrize(("value", "gpu", "compiler"), USED)
def test_it_is_used_where_a_gpu_can_run_it(monkeypatch, value, gpu, compiler):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(triton_rows.shutil, "which", lambda _: compiler)
    monkeypatch.setattr(triton_rows, "find_spec", lambda _: "found")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert triton_rows.wanted(value) is USED[value, gpu, compiler]


def test_the_compiler_may_be_named(monkeypatch):
    monkeypatch.setattr(triton_rows.shutil, "which", lambda _: None)
    monkeypatch.setattr(triton_rows, "find_spec", lambda _: "found")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("CC", "/opt/cc")
    assert triton_rows.wanted(None)
