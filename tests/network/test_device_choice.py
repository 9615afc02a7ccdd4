"""Which device is chosen, and what MPS lacks, by tensors that refuse float64 as those on MPS do."""

import math

import pytest
import torch

from elman.cli import mistakes
from elman.cli.launching import LaunchOptions
from elman.errors import UserError
from elman.evaluation.perplexity import sum_scores
from elman.network import device
from elman.network.device import choose_device, visible_gpus, widest
from elman.network.fast.mixture import log_prob

REFUSAL = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32"
)


class OnMPS(torch.Tensor):
    """A tensor on the CPU that has the device and the limits of one on MPS until it is moved by `cpu`."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.Tensor.device.__get__:
            return torch.device("mps")
        found = super().__torch_function__(function, types, args, kwargs or {})
        if function is torch.Tensor.cpu:
            return found.as_subclass(torch.Tensor)
        if isinstance(found, OnMPS) and torch.Tensor.dtype.__get__(found) == torch.float64:
            raise TypeError(REFUSAL)
        return found


def available(monkeypatch, *, cuda=False, mps=False):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(("cuda", "mps", "chosen"), [(0, 0, "cpu"), (0, 1, "cpu"), (1, 0, "cuda"), (1, 1, "cuda")])
def test_auto(monkeypatch, cuda, mps, chosen):
    available(monkeypatch, cuda=bool(cuda), mps=bool(mps))
    assert choose_device("auto") == torch.device(chosen)


@pytest.mark.parametrize("name", ["auto", "cuda", torch.device("cuda", 0)])
def test_float32_is_not_tf32_on_a_gpu(monkeypatch, name):
    available(monkeypatch, cuda=True)
    monkeypatch.setitem(device._COUNTS, "cuda", lambda: 1)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    choose_device("cpu")
    assert torch.backends.cudnn.allow_tf32
    choose_device(name)
    assert not torch.backends.cudnn.allow_tf32


def test_there_is_one_cpu():
    assert choose_device("cpu:0") == torch.device("cpu", 0)
    with pytest.raises(UserError, match="--device cpu:1: torch finds 1, numbered from 0; write --device cpu:0"):
        choose_device("cpu:1")


def test_mps_is_chosen_by_its_name(monkeypatch):
    available(monkeypatch, mps=True)
    assert choose_device("mps") == torch.device("mps")
    with pytest.raises(UserError, match="torch finds 1, numbered from 0; write --device mps:0"):
        choose_device("mps:1")
    available(monkeypatch)
    with pytest.raises(UserError, match="torch finds no device of type mps; write --device cpu"):
        choose_device("mps")


def test_sums_are_as_wide_as_the_device_allows():
    assert {name: widest(torch.device(name)) for name in ("cpu", "cuda", "mps")} == {
        "cpu": torch.float64,
        "cuda": torch.float64,
        "mps": torch.float32,
    }


def test_scores_are_summed_in_float64_on_the_cpu():
    parts = [torch.full((1000,), -0.1), torch.full((3,), -1e-4)]
    on_mps = [part.as_subclass(OnMPS) for part in parts]
    with pytest.raises(TypeError, match="float64"):
        on_mps[0].double()
    score = sum_scores(iter(on_mps), 2)
    assert score == sum_scores(iter(parts), 2)
    assert math.isclose(score.nll_sum, sum(float(part.double().neg().sum()) for part in parts), rel_tol=1e-12)


def test_the_fast_likelihood_falls_back_to_plain_products():
    """No layout of the CPU's library, and chunks of the size for GPUs."""
    draw = torch.Generator().manual_seed(0)
    context, weight = (torch.randn(*shape, generator=draw) for shape in ((6, 2, 4), (9, 4)))
    prior, target = torch.randn(6, 2, generator=draw).log_softmax(1), torch.arange(6)
    expected = log_prob(context, prior, weight, None, target, "softmax")
    found = log_prob(
        *(one.as_subclass(OnMPS) for one in (context, prior, weight)), None, target.as_subclass(OnMPS), "softmax"
    )
    torch.testing.assert_close(found.cpu(), expected)


def test_the_refusal_of_torch_is_one_line():
    line = mistakes.explain(None, TypeError(f"{REFUSAL} instead."))
    assert line == "--device mps has no float64, in which this is computed; write --device cpu"
    assert mistakes.explain(None, TypeError("another")) is None


def test_random_states_are_restored(monkeypatch):
    kept, called = device.random_states(), []
    first = torch.rand(3)
    device.restore_random_states(kept)
    assert torch.equal(torch.rand(3), first)
    available(monkeypatch, mps=True)
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: torch.tensor([7], dtype=torch.uint8))
    monkeypatch.setattr(torch.mps, "set_rng_state", called.append)
    states = device.random_states()
    device.restore_random_states(states)
    assert [state.tolist() for state in called] == [[7]]


@pytest.mark.parametrize(
    ("count", "variable", "gpus"),
    [
        (0, None, ()),
        (1, "3", ()),
        (2, None, ("0", "1")),
        (2, "3, 1", ("3", "1")),
        (2, "GPU-8f,GPU-2a,-1,GPU-3c", ("GPU-8f", "GPU-2a")),
    ],
)
def test_gpus_are_named_as_the_variable_names_them(count, variable, gpus, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert visible_gpus() == gpus


@pytest.mark.parametrize(
    ("device", "launcher", "gpus"),
    [("auto", "local", ("0", "1")), ("cuda", "local", ("0", "1")), ("cuda:1", "local", ()), ("auto", "slurm", ())],
)
def test_local_jobs_share_the_gpus_that_are_not_chosen(device, launcher, gpus, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if launcher == "slurm":
        pytest.importorskip("submitit")
    assert LaunchOptions(launcher=launcher).launch(tmp_path, device).gpus == gpus
