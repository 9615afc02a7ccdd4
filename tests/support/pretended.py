"""A GPU that is pretended: tensors on the CPU with the label "cuda", and an error where labels meet that must not.

torch's fake tensors would do, but torch without CUDA aborts as soon as a fake tensor "on cuda" needs a gradient. Here
every tensor is an ordinary one whose values are computed on the CPU. Within `Pretended`, `device` gives its label, and
an operation on tensors of both labels raises, as on a GPU, except for scalars and copies. So what programs choose by
the device is what they choose on a GPU, values can be compared, and reading a value is recorded, for which a GPU would
be waited for. What it cannot show: which operations CUDA lacks, and how they round. Kernels of Triton, which need a
real GPU, are not used.
"""

from collections import Counter
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from elman.network.fast import triton_rows

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
COPIES = (
    torch.ops.aten.copy_.default,
    torch.ops.aten._to_copy.default,
    torch.ops.aten._has_compatible_shallow_copy_type.default,
)
READINGS = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)
TO_NUMPY = (torch.Tensor.numpy, torch.Tensor.__array__)
DEVICE, IS_CUDA, IS_CPU = (getattr(torch.Tensor, name).__get__ for name in ("device", "is_cuda", "is_cpu"))


class Generator(torch.Generator):
    """Random numbers of a device, drawn on the CPU."""

    def __new__(cls, device: Any = "cpu") -> "Generator":
        """One on the CPU."""
        return super().__new__(cls)

    def __init__(self, device: Any = "cpu") -> None:
        self.label = label_of(device)


def label_of(device: Any) -> torch.device:
    """The label for a device or its name."""
    return CUDA if torch.device(device).type == "cuda" else CPU


class DeviceMismatchError(RuntimeError):
    """Tensors of two devices in one operation."""


def storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """The storage of a tensor, also of one that `torch.func` follows; None: it has none."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return None if tensor.is_mkldnn else tensor.untyped_storage()


def key_of(tensor: Tensor) -> int | None:
    """What tells the storage of a tensor from others that there are now."""
    storage = storage_of(tensor)
    return None if storage is None else storage._cdata


class Labels:
    """The labels of storages; None where one was made by torch's own code, in which case it fits anywhere."""

    def __init__(self) -> None:
        # A weak reference keeps the key from being that of a later storage.
        self._of: dict[int, tuple[torch.device, StorageWeakRef]] = {}

    def get(self, tensor: Tensor) -> torch.device | None:
        """The label of a tensor."""
        key = key_of(tensor)
        return self._of[key][0] if key in self._of else None

    def put(self, tensor: Tensor, label: torch.device | None) -> None:
        """Label a tensor and its views."""
        if (storage := storage_of(tensor)) is not None:
            self._of.pop(storage._cdata, None)
            if label is not None:
                self._of[storage._cdata] = label, StorageWeakRef(storage)


def tensors_in(*things: Any) -> list[Tensor]:
    """All tensors within nested things."""
    found = []
    for one in things:
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, tuple | list | dict):
            found += tensors_in(*(one.values() if isinstance(one, dict) else one))
    return found


class Operations(TorchDispatchMode):
    """Checks the labels of every operation, those of backward passes too, and labels the results."""

    def __init__(self, labels: Labels) -> None:
        super().__init__()
        self.labels = labels
        self.readings: Counter[str] = Counter()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch's compiler would be imported for that."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operation."""
        given = tensors_in(args, kwargs)
        found = [self.labels.get(one) for one in given]
        if CUDA in found and CPU in found and func not in COPIES:
            places = [*zip(found, given, strict=True)]
            if any(label == CPU and one.dim() for label, one in places):
                raise DeviceMismatchError(
                    f"{func}: {', '.join(f'{label} {tuple(one.shape)}' for label, one in places)}"
                )
        if func in READINGS and CUDA in found:
            self.readings[str(func)] += 1
        if func is torch.ops.aten.mm.dtype:  # CUDA alone has it
            made: Any = args[0].float() @ args[1].float()
        else:
            made = func(*args, **(kwargs or {}))
        known = {key_of(one) for one in given}
        label = CUDA if CUDA in found else CPU if CPU in found else None
        for one in tensors_in(made):
            if key_of(one) not in known:
                self.labels.put(one, label)
        return made


class Pretended(TorchFunctionMode):
    """Within the block the device "cuda" can be named; `readings` counts the values that were read from it."""

    def __init__(self) -> None:
        super().__init__()
        self.labels = Labels()
        self.operations = Operations(self.labels)

    @property
    def readings(self) -> Counter[str]:
        """How often each operation read values for which the GPU is waited for."""
        return self.operations.readings

    def __enter__(self) -> "Pretended":
        """Begin to check."""
        self._patches = [
            mock.patch.object(torch, "Generator", Generator),
            mock.patch.object(triton_rows, "WANTED", False),
            self._in_backward_passes(),
        ]
        for patch in self._patches:
            patch.start()
        self.operations.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """Check no more."""
        super().__exit__(*error)
        self.operations.__exit__(*error)
        for patch in self._patches:
            patch.stop()

    def _in_backward_passes(self) -> Any:
        """What checks the Python code of backward passes, which torch calls without the mode that it is called in."""
        function, plain = torch.autograd.function.BackwardCFunction, torch.autograd.function.BackwardCFunction.apply
        entered, left = super().__enter__, super().__exit__

        def apply(node: Any, *gradients: Any) -> Any:
            entered()
            try:
                return plain(node, *gradients)
            finally:
                left(None, None, None)

        return mock.patch.object(function, "apply", apply)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch with devices taken out, and label what it makes."""
        kwargs = dict(kwargs or {})
        if func in (DEVICE, IS_CUDA, IS_CPU):
            label = self.labels.get(args[0]) or CPU
            return label if func == DEVICE else label == (CPU if func == IS_CPU else CUDA)
        if func in TO_NUMPY and self.labels.get(args[0]) == CUDA:
            raise TypeError("can't convert cuda:0 device type tensor to numpy; use Tensor.cpu() first")
        given = tensors_in(args, kwargs)
        if func in (Tensor.to, Tensor.cpu):
            return self._moved(func, args, kwargs)
        named = kwargs.pop("device", None)
        if isinstance(generator := kwargs.get("generator"), Generator):
            places = {generator.label, *(self.labels.get(one) or generator.label for one in given)}
            if len(places | ({label_of(named)} if named is not None else set())) > 1:
                raise DeviceMismatchError(f"{func}: its generator is on {generator.label}")
        made = func(*args, **kwargs)
        for one in tensors_in(made) if given or named is not None or not isinstance(made, Tensor) else [made]:
            if named is not None:
                self.labels.put(one, label_of(named))
            elif not given:
                self.labels.put(one, CPU)
            elif self.labels.get(one) is None and CUDA in map(self.labels.get, given):
                self.labels.put(one, CUDA)
        return made

    def _moved(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Tensor:
        tensor, *rest = args
        target, before = self.labels.get(tensor), self.labels.get(tensor)
        if func is Tensor.cpu:
            target = CPU
        elif rest and isinstance(rest[0], Tensor):
            target, rest[0] = self.labels.get(rest[0]), rest[0].dtype
        elif rest and isinstance(rest[0], str | torch.device):
            target = label_of(rest.pop(0))
        if (named := kwargs.pop("device", None)) is not None:
            target = label_of(named)
        dtype = next((one for one in (*rest, *kwargs.values()) if isinstance(one, torch.dtype)), tensor.dtype)
        made = Tensor.to(tensor, dtype, copy=kwargs.get("copy", False))
        if target is not None and target != before:
            if key_of(made) == key_of(tensor):
                made = made.clone()
            self.labels.put(made, target)
            if before == CUDA:
                self.readings["copy to the CPU"] += 1
        return made
