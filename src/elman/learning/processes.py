"""The processes that train one model together, under torchrun; every process computes a part of each batch.

Sums have one order, whatever the number of processes: a balanced tree, whose lower part is added within a process and
whose upper part between processes (`Processes.add`), so that equal parts give equal bits.
"""

import contextlib
import datetime
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, distributed

from elman.errors import UserError
from elman.learning.team import Team, machines

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

LONGEST_WAIT = datetime.timedelta(days=7)
"""For another process, such as the first one while it validates; one that ended is noticed at once."""


class Processes(Team):
    """The processes that torchrun has started; a power of two of them.

    Raises UserError, in every method, where another process has ended.
    """

    def __init__(self) -> None:
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        gpus = distributed.get_backend() == "nccl"
        self._device = torch.device("cuda", torch.cuda.current_device()) if gpus else torch.device("cpu")

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Exchange the sums of 1, 2, 4, ... neighbours: a + b = b + a to the bit, so all processes have the same."""
        distance = 1
        while distance < self.size:
            other = self.rank ^ distance
            for tensor in tensors:
                received = torch.empty_like(tensor)
                with _noticing_the_end():
                    exchange = [
                        distributed.P2POp(distributed.isend, tensor, other),
                        distributed.P2POp(distributed.irecv, received, other),
                    ]
                    for request in distributed.batch_isend_irecv(exchange):
                        request.wait()
                tensor.add_(received)
            distance *= 2

    def any(self, *flags: bool) -> tuple[bool, ...]:
        found = torch.tensor(flags, dtype=torch.int32, device=self._device)
        with _noticing_the_end():
            distributed.all_reduce(found, distributed.ReduceOp.MAX)
        return tuple(bool(flag) for flag in found.tolist())

    def from_first(self, number: float) -> float:
        found = torch.tensor(number, dtype=torch.float64, device=self._device)
        with _noticing_the_end():
            distributed.broadcast(found, 0)
        return float(found)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        with _noticing_the_end():
            distributed.all_gather(found, tensor.contiguous())
        return found

    def require_same(self, digest: str, what: str) -> None:
        own = torch.frombuffer(bytearray.fromhex(digest), dtype=torch.uint8).to(self._device)
        differing = [rank for rank, one in enumerate(self.gather(own)) if not torch.equal(one, own)]
        if differing:
            raise UserError(
                f"the {what} of processes {differing[0]} and {self.rank} differ; all processes need the"
                " same versions, the same kind of processor or GPU and the same --threads; continue with --resume"
            )

    def wait(self) -> None:
        self.any(False)


@contextlib.contextmanager
def _noticing_the_end() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise UserError(
            "another process of this training has ended (its own message states the reason); start them again with"
            " --resume"
        ) from error


@contextlib.contextmanager
def started(device: torch.device, size: int) -> Iterator[Processes]:
    """The `size` processes of torchrun within the block, by NCCL on GPUs and gloo on CPUs.

    Raises UserError where their number is not a power of two, or torchrun would start them again in vain.
    """
    if size & (size - 1):
        raise UserError(
            f"torchrun started {size} processes; their number must be a power of two that divides training.slices"
        )
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend, store = "nccl" if device.type == "cuda" else "gloo", _meeting_place()
    distributed.init_process_group(
        backend, store=store, rank=int(os.environ["RANK"]), world_size=size, timeout=LONGEST_WAIT
    )
    try:
        yield Processes()
    finally:
        distributed.destroy_process_group()


def _meeting_place() -> "Store":
    """The store by which the processes find each other, without what an earlier start left there.

    torchrun keeps one store for all starts (issue 135712 of PyTorch), and each machine counts its own starts.
    """
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store: Store = next(rendezvous("env://", timeout=LONGEST_WAIT))[0]
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return store
    if machines() > 1 and int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")):
        raise UserError(
            "torchrun --max-restarts on several machines: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in the environment"
            " of torchrun, with --rdzv-backend c10d and an --rdzv-id, or leave --max-restarts out"
        )
    return PrefixStore(f"start {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
