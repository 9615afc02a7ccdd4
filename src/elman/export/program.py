"""A step as a program of torch.export, which runs without the code of elman."""

import io
from pathlib import Path

import torch

from elman.errors import UserError, first_line
from elman.export.check import TorchStep
from elman.export.step import Step, tracing
from elman.files import write_atomic


def read_program(path: Path, step: Step) -> TorchStep:
    """The stored program of a step, run on the CPU."""
    return TorchStep(torch.export.load(path).module(), step)


def write_program(step: Step, path: Path) -> None:
    """Write a step for any number of sequences; raises UserError where an operation of it cannot be traced."""
    batch = {0: torch.export.Dim("batch", min=1)}
    examples = [tensor.repeat(2, *[1] * (tensor.ndim - 1)) for tensor in step.beginning]
    try:
        with tracing():
            program = torch.export.export(
                step,
                (torch.tensor([0, 1]), *examples),
                dynamic_shapes=(batch, tuple(batch for _ in examples)),
                strict=False,
            )
    except (RuntimeError, torch._dynamo.exc.UserError) as error:
        raise UserError(f"this network cannot be traced: {first_line(error)}") from error
    memory = io.BytesIO()  # torch ends the process where it cannot write to a file
    torch.export.save(program, memory)
    write_atomic(path, memory.getvalue())
