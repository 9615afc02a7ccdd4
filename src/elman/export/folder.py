"""The folder of an exported model: the graph in its forms, the words, and what a program must know to run it."""

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from elman import __version__
from elman.config.inference import Sampling
from elman.decoding.sampling import generate
from elman.errors import UserError, first_line, notice
from elman.export.onnx import OnnxStep, PackedOnnxStep, require_onnx, write_half, write_int8, write_packed, write_step
from elman.export.readme import Exported, File, readme
from elman.export.step import TOLERANCE, ExportedStep, Packed, Step, TorchStep, compare, perplexity_of, tracing
from elman.files import explain, json_text, sha256_file, temporary_folder, write_atomic
from elman.tasks.text.run import TextRun


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


COMPARED = 200
"""Tokens read one by one."""

COLUMNS, ROWS = 20, 250
"""Columns of the valid split whose perplexity is measured, and tokens in each at most."""

EXACT = ("model.onnx", "model.pt2", "model.safetensors")
"""Files in float32, which must be the model."""

CONFIG, TOKENS, BEGINNING, README = "config.json", "tokens.txt", "beginning.npz", "README.md"


class Forms(NamedTuple):
    """What is written with the graph in float32; `sherpa`: a graph in the form of that recogniser, in its place."""

    int8: bool = False
    half: bool = False
    sherpa: bool = False


FLOAT32 = Forms()


class Text(NamedTuple):
    """What graphs are compared on: tokens read one by one, and columns [T, B] of the valid split, if it is there."""

    tokens: npt.NDArray[np.integer]
    columns: npt.NDArray[np.integer] | None


def export_onnx(
    run: TextRun, out: Path, forms: Forms = FLOAT32, *, data: str | None = None, say: Callable[[str], None] = notice
) -> Exported:
    """Write the run's model as ONNX into a new folder, and compare every graph with the model.

    The comparison is on the valid split of the run's data or of `data`; without it on tokens that the model draws.
    Raises UserError where the folder is not empty, a package is missing, the network cannot be written, or a graph in
    float32 differs from the model.
    """
    require_onnx()
    step, text = Step(run.model), text_of(run, data)
    with new_folder(out) as folder:
        main = folder / "model.onnx"
        say("writing model.onnx")
        _write_graph(run, step, main, forms)
        paths = [main]
        for wanted, suffix, write in ((forms.int8, "int8", write_int8), (forms.half, "half", write_half)):
            if wanted:
                paths.append(folder / f"model.{suffix}.onnx")
                say(f"writing {paths[-1].name}")
                write(main, paths[-1])
        files = [
            measured(run, path, PackedOnnxStep(path) if forms.sherpa else OnnxStep(path, step), text) for path in paths
        ]
        return _finish(run, step, folder, out, files, text, _INPUTS[forms.sherpa], forms.sherpa)


def export_program(run: TextRun, out: Path, *, data: str | None = None) -> Exported:
    """Write the run's model as a program of torch.export into a new folder; otherwise as `export_onnx`."""
    step, text = Step(run.model), text_of(run, data)
    with new_folder(out) as folder:
        path = folder / "model.pt2"
        write_program(step, path)
        files = [measured(run, path, read_program(path, step), text)]
        return _finish(run, step, folder, out, files, text, _INPUTS[False], sherpa=False)


_INPUTS = {
    False: "symbols int64 [B] and the tensors of the state",
    True: "x int64 [N, 1], h and c float32 [1, N, S], which begin as zeros",
}


def _write_graph(run: TextRun, step: Step, path: Path, forms: Forms) -> None:
    vocabulary = run.vocabulary
    facts = {"model_type": "elman", "title": run.recipe.title, "vocab_size": len(vocabulary), "sos_id": run.first}
    if not forms.sherpa:
        return write_step(step, step.beginning, path, facts)
    packed = Packed(step)
    facts |= {"num_layers": 1, "hidden_size": packed.size, "version": "1"}
    return write_packed(packed, path, facts)


def measured(run: TextRun, path: Path, step: ExportedStep, text: Text) -> File:
    """Raises UserError where a graph in float32 is not the model."""
    compared = compare(run.model, step, text.tokens, run.first)
    if path.name in EXACT and not compared.difference <= TOLERANCE:
        raise UserError(
            f"the graph is not the model: their log-probabilities differ by {compared.difference:.2g} nats over"
            f" {compared.tokens} tokens; nothing was written"
        )
    found = None if text.columns is None else perplexity_of(step, text.columns, run.first)
    return File(path.name, path.stat().st_size, sha256_file(path), *compared, perplexity=found)


def with_own(run: TextRun, step: Step, out: Path, files: list[File], text: Text) -> Exported:
    """What was written, and the perplexity of the model itself."""
    if text.columns is None:
        return Exported(str(out), files, None, 0)
    own = perplexity_of(TorchStep(step, step), text.columns, run.first)
    return Exported(str(out), files, own, text.columns.size)


def text_of(run: TextRun, data: str | None) -> Text:
    """Tokens to compare on: of the valid split, else drawn by the model."""
    try:
        tokens = run.corpus(data).split("valid").tokens
    except UserError as error:
        if data is not None:
            raise
        notice(f"the valid split cannot be read, so tokens that the model draws are compared: {error}")
        draw = torch.Generator(run.device).manual_seed(0)
        stream = generate(run.model, [run.first], run.begin(), Sampling(), draw)
        return Text(np.array([symbol for symbol, _ in (next(stream) for _ in range(COMPARED))]), None)
    width = min(COLUMNS, len(tokens))
    height = min(ROWS, len(tokens) // width)
    return Text(tokens[:COMPARED], tokens[: height * width].reshape(width, height).T)


def _finish(
    run: TextRun, step: Step, folder: Path, out: Path, files: list[File], text: Text, inputs: str, sherpa: bool
) -> Exported:
    exported = with_own(run, step, out, files, text)
    words = run.vocabulary.words
    write_atomic(folder / TOKENS, "".join(f"{word} {number}\n" for number, word in enumerate(words)))
    states = [
        {"input": f"state_{n}", "output": f"next_state_{n}", "shape": list(one.shape[1:]), "dtype": str(one.dtype)[6:]}
        for n, one in enumerate(step.beginning)
    ]
    zero = all(not one.any() for one in step.beginning)
    if not zero and not sherpa:
        arrays: dict[str, Any] = {f"state_{n}": one.numpy() for n, one in enumerate(step.beginning)}
        np.savez(folder / BEGINNING, **arrays)
    facts = {
        "title": run.recipe.title,
        "elman": __version__,
        "vocabulary": {"size": len(words), "file": TOKENS, "digest": run.vocabulary.digest},
        "first": run.first,
        "eos": run.vocabulary.eos,
        "unk": run.vocabulary.unk,
        "tokenisation": run.options.tokenisation,
        "inputs": inputs,
        "states": [] if sherpa else states,
        "beginning": "zeros" if zero or sherpa else BEGINNING,
        "perplexity": exported.perplexity,
        "tokens": exported.tokens,
        "files": msgspec.to_builtins(files),
    }
    write_atomic(folder / CONFIG, json_text(facts, indent=2) + "\n")
    write_atomic(folder / README, readme(run, exported, sherpa=sherpa))
    return exported


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder that takes the place of `out` when the block ends well.

    Raises UserError where `out` is not empty, or is the working folder.
    """
    if not out.name or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise UserError(f"--out {out}: it exists; give the name of a new folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(out) as beside:
            folder = beside / out.name
            folder.mkdir()
            yield folder
            if out.exists():
                out.rmdir()
            folder.rename(out)
    except OSError as error:
        raise UserError(explain(out, error)) from error
    except UserError as error:  # of a file within it, which the user knows by its place in `out`
        error.args = (str(error).replace(str(beside), str(out.parent)),)
        raise
