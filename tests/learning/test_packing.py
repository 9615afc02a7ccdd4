"""Weights in fewer bits: rounding within half a step of every row, float32 again on opening, digests."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from elman.errors import UserError
from elman.learning import checkpoint, packing

TENSORS = {
    "encoder.weight": torch.randn(7, 5, generator=torch.Generator().manual_seed(1)),
    "bias": torch.randn(7, generator=torch.Generator().manual_seed(2)),
    "empty.weight": torch.zeros(2, 3),
    "clusters": torch.tensor([3, 1]),
}


def test_rows_are_rounded_to_their_own_scale():
    """q = round(w / s) with s = max |w| / 127 per row, in NumPy."""
    packed = packing.pack(TENSORS, "int8")
    weight = TENSORS["encoder.weight"].numpy()
    scale = np.abs(weight).max(1) / np.float32(127)
    assert packed["encoder.weight"].dtype == torch.int8
    np.testing.assert_array_equal(packed["encoder.weight"].numpy(), np.round(weight / scale[:, None]))
    np.testing.assert_array_equal(packed["encoder.weight:scale"].numpy(), scale)
    assert np.abs(packed["encoder.weight"].numpy()).max(1).tolist() == [127] * 7
    assert packed["bias"] is TENSORS["bias"]
    assert packed["clusters"] is TENSORS["clusters"]


def test_unpacked_weights_are_within_half_a_step():
    whole = packing.unpack(packing.pack(TENSORS, "int8"))
    assert whole.keys() == TENSORS.keys()
    weight = TENSORS["encoder.weight"]
    steps = weight.abs().amax(1, keepdim=True) / 127
    assert ((whole["encoder.weight"] - weight).abs() <= steps * 0.5001).all()
    assert whole["encoder.weight"].dtype == torch.float32
    assert torch.equal(whole["empty.weight"], TENSORS["empty.weight"])


def test_sixteen_bits():
    packed = packing.pack(TENSORS, "half")
    assert {name: tensor.dtype for name, tensor in packed.items() if name != "clusters"} == dict.fromkeys(
        ("encoder.weight", "bias", "empty.weight"), torch.float16
    )
    whole = packing.unpack(packed)
    assert torch.equal(whole["encoder.weight"], TENSORS["encoder.weight"].half().float())
    assert torch.equal(whole["clusters"], TENSORS["clusters"])


def test_small_integers_without_scales_are_left_as_they_are():
    given = {"small": torch.tensor([[1, -2]], dtype=torch.int8)}
    assert torch.equal(packing.unpack(given)["small"], given["small"])


@pytest.mark.parametrize("form", ["int8", "half"])
def test_a_file_is_opened_as_float32(tmp_path, form):
    path = tmp_path / "model.safetensors"
    digest = packing.save_packed(path, TENSORS, {"step": 3}, form)
    tensors, facts = checkpoint.load(path, "step")
    assert checkpoint.digest_of(tensors) == digest == facts["unpacked"]
    assert tensors.keys() == TENSORS.keys()
    assert torch.equal(tensors["encoder.weight"], packing.unpack(packing.pack(TENSORS, form))["encoder.weight"])


def test_weights_other_than_those_stated_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    packed = packing.pack(TENSORS, "int8")
    checkpoint.save(path, packed, {"unpacked": "0" * 64})
    with pytest.raises(UserError, match="should have 000000000000"):
        checkpoint.load(path)
    packed["encoder.weight:scale"] = packed["encoder.weight:scale"][:-1].clone()
    checkpoint.save(path, packed, {"unpacked": "0" * 64})
    with pytest.raises(UserError, match="cannot be unpacked"):
        checkpoint.load(path)


def test_a_packed_file_that_was_altered_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    packing.save_packed(path, TENSORS, {}, "int8")
    with safe_open(path, framework="pt") as file:
        header, tensors = file.metadata(), {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    tensors["encoder.weight"][0, 0] += 1
    save_file(tensors, path, header)
    with pytest.raises(UserError, match="altered since it was written"):
        checkpoint.load(path)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"a": torch.zeros(2)}, "b is missing, the recipe needs"),
        ({"a": torch.zeros(2), "b": torch.zeros(1), "c": torch.zeros(1)}, "c is .*, the recipe needs nothing of that"),
        ({"a": torch.zeros(2), "b": torch.zeros(3)}, "b is .*3.*, the recipe needs .*1"),
        ({"a": torch.tensor([0, torch.nan]), "b": torch.zeros(1)}, "a has values that are not finite"),
    ],
)
def test_tensors_that_are_not_those_of_the_model(found, message):
    own, place = {"a": torch.zeros(2), "b": torch.zeros(1)}, Path("run")
    checkpoint.require_fit(place, own, own, place)
    with pytest.raises(UserError, match=message):
        checkpoint.require_fit(place, own, found, place)
