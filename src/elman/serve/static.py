"""The page without a server: a folder for any static host, in which the browser itself computes the model.

The model is an ONNX graph with weights of eight bits. onnxruntime-web runs it, whose files are taken from its npm
package.
"""

import base64
import hashlib
import shutil
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, final

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.analysis.mixture import levels_of
from elman.data.archives import Archive
from elman.data.text.cache import cache_folder
from elman.data.text.tokeniser import LEADING, TIGHT, TIGHT_AFTER, TIGHT_BEFORE, TRAILING
from elman.errors import UserError, first_line, notice
from elman.export.check import Beginning, compare
from elman.export.folder import new_folder, text_of
from elman.export.onnx import OnnxGraph, require_onnx, write_int8, write_step
from elman.export.step import Step
from elman.files import json_text, write_atomic
from elman.learning.constraint import spectral_radii
from elman.network.output.choice import Choice
from elman.network.output.contexts import Mixture
from elman.network.state import leaves, rebuild
from elman.serve.limits import Limits
from elman.serve.page_files import TYPES, page_files
from elman.serve.text import TextService
from elman.serve.worker import Work
from elman.tasks.text.run import TextRun

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
"""SHA-512 of the npm package of that version, as the registry states it."""

RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
"""Files of the package that the page loads."""

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'"
)

TOLERANCE = 1e-3
"""Nats by which the graph in float32 may differ from the model."""


class Written(NamedTuple):
    """A folder that was written: its size, and the differences of the graphs from the model (nats)."""

    folder: str
    bytes: int
    model_bytes: int
    difference: float
    difference_int8: float
    compared: int


@final
class LookStep(torch.nn.Module):
    """A step that also gives what the panels show.

    Outputs: log-probabilities [B, V], the levels of the core side by side [B, H_0 + ... + H_L], of a mixture the
    weights [B, K] and log-probabilities [B, K, V] of its components, and the tensors of the state.
    """

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.model, self.template = step.model, step.template
        self.mixes = isinstance(self.model.output.contexts, Mixture)

    def forward(self, symbols: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """As described above, after `symbols` [B] and the state before them."""
        trace, after = self.model.trace(symbols.unsqueeze(0), rebuild(self.template, iter(state)))
        levels = torch.cat([level[0] for level in trace.raw], dim=-1)
        if not self.mixes:
            return self.model.output.log_probs(trace)[0], levels, *leaves(after)
        choice = self.model.output.choice
        assert isinstance(choice, Choice)
        vectors, log_prior = self.model.output.contexts(trace)
        each = choice.log_probs(vectors[0])
        log_probs = torch.logsumexp(log_prior[0].unsqueeze(-1) + each, dim=1)
        return log_probs, levels, log_prior[0].exp(), each, *leaves(after)


class _Graph(Beginning):
    """A graph of `LookStep` as a step that is compared."""

    def __init__(self, path: Path, step: Step, extra: int) -> None:
        super().__init__(step)
        self.graph, self.extra = OnnxGraph(path), extra

    def __call__(self, symbols: npt.NDArray[np.integer], *state: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        log_probs, *others = self.graph(symbols, *state)
        return [log_probs, *others[self.extra :]]


def export_web(
    run: TextRun,
    out: Path,
    *,
    package: Path | None = None,
    data: str | None = None,
    say: Callable[[str], None] = notice,
) -> Written:
    """Write the page with the run's model into a new folder.

    `package` is the npm package of onnxruntime-web (default: fetched by npm, once). Raises UserError where the folder
    is not empty, a package is missing, the network cannot be written, the graph is not the model, or the text is read
    in a way that the page cannot repeat.
    """
    require_onnx()
    if run.options.tokenisation == "subwords":
        raise UserError(f"{run.path}: the page without a server reads words, characters and bytes, and not subwords")
    archive = fetched(say) if package is None else package
    step, text = Step(run.model), text_of(run, data)
    look = LookStep(step)
    with new_folder(out) as folder:
        names = ["log_probs", "levels", *(["prior", "each"] if look.mixes else [])]
        whole, small = folder / "whole.onnx", folder / "model.onnx"
        say("writing the graph")
        write_step(look, step.beginning, whole, {"model_type": "elman"}, names)
        write_int8(whole, small)
        extra = len(names) - 1
        exact = compare(run.model, _Graph(whole, step, extra), text.tokens, run.first)
        if not exact.difference <= TOLERANCE:
            raise UserError(
                f"the graph is not the model: they differ by {exact.difference:.2g} nats; nothing was written"
            )
        rounded = compare(run.model, _Graph(small, step, extra), text.tokens, run.first)
        whole.unlink()
        for beside in folder.glob("whole.onnx*"):
            beside.unlink()
        _write_page(folder)
        _write_runtime(folder, archive)
        say("computing the principal components of the states")
        write_atomic(folder / "run.json", json_text(facts_of(run, step, rounded.difference)) + "\n")
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        model_bytes = small.stat().st_size
    return Written(str(out), size, model_bytes, exact.difference, rounded.difference, exact.tokens)


def facts_of(run: TextRun, step: Step, difference: float) -> dict[str, Any]:
    """What the page must know: the run, its words and how they are read, states, and what panels show."""
    service = TextService(run.path.resolve().name, run, Limits())
    facts, vocabulary, model = service.facts(), run.vocabulary, run.model
    kept = [one for one in facts.panels if one not in ("adapt", "neighbours", "compare")]
    bases = [_done(service.views.basis(layer)) for layer in range(service.views.num_layers)]
    mixes = isinstance(model.output.contexts, Mixture)
    return {
        "facts": msgspec.to_builtins(msgspec.structs.replace(facts, panels=kept)),
        "words": vocabulary.words,
        "first": run.first,
        "eos": vocabulary.eos,
        "unk": vocabulary.unk,
        "reading": {
            "tokenisation": run.options.tokenisation,
            "lowercase": run.options.lowercase,
            "eos": run.options.eos,
            "normalisation": run.options.normalisation,
            "ruby": run.options.ruby,
            "leading": LEADING,
            "trailing": TRAILING,
            "tight_before": sorted(TIGHT_BEFORE),
            "tight_after": sorted(TIGHT_AFTER),
            "tight": sorted(TIGHT),
        },
        "states": [
            {
                "shape": list(one.shape),
                "dtype": str(one.dtype)[6:],
                "values": one.flatten().tolist() if one.any() else None,
            }
            for one in step.beginning
        ],
        "component_layers": levels_of(model) if mixes else [],
        "bases": [
            {
                "mean": [float(f"{x:.6g}") for x in one.mean],
                "axes": [[float(f"{x:.6g}") for x in axis] for axis in one.axes],
                "shares": one.shares.tolist(),
            }
            for one in bases
        ],
        "radii": spectral_radii(model.core),
        "difference": difference,
    }


def _done(work: Work[Any]) -> Any:
    """The answer of a piece of work that nothing else waits for."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            return stop.value


def _write_page(folder: Path) -> None:
    """The files of the page, of which two are others here: which backend it asks, and what it may load."""
    own = resources.files("elman.serve") / "web"
    files = dict(page_files()) | {
        one.name: one.read_bytes() for one in own.iterdir() if f".{one.name.rpartition('.')[2]}" in TYPES
    }
    policy = f'<meta http-equiv="content-security-policy" content="{POLICY}">\n  '.encode()
    files["index.html"] = files["index.html"].replace(b"<title>", policy + b"<title>", 1)
    for name, body in files.items():
        if name != "server.js":
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(body)


def _write_runtime(folder: Path, package: Path) -> None:
    """The files of onnxruntime-web; raises UserError where the package is not the expected one."""
    digest = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    if digest != INTEGRITY:
        raise UserError(
            f"{package}: not {PACKAGE} {VERSION} (its SHA-512 differs); give that package, or delete the file"
        )
    archive = Archive(package)
    found = set()
    for name, file in archive.tar_members():
        last = name.rsplit("/", 1)[-1]
        if last in RUNTIME:
            with (folder / last).open("wb") as opened:
                opened.writelines(archive.blocks(file))
            found.add(last)
    if missing := set(RUNTIME) - found:
        raise UserError(f"{package}: no {', '.join(sorted(missing))} inside; give {PACKAGE} {VERSION}")


def fetched(say: Callable[[str], None] = notice) -> Path:
    """The npm package in elman's cache, fetched by npm where it is not there; raises UserError where that fails."""
    folder = cache_folder() / "npm"
    path = folder / f"{PACKAGE}-{VERSION}.tgz"
    if path.is_file():
        return path
    npm = shutil.which("npm")
    advice = f"get it with `npm pack {PACKAGE}@{VERSION}` and name the file with --package"
    if npm is None:
        raise UserError(f"the page needs the npm package {PACKAGE} {VERSION}, and there is no npm here; {advice}")
    say(f"fetching {PACKAGE} {VERSION} with npm")
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--pack-destination", str(folder), "--silent"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    except (subprocess.SubprocessError, OSError) as error:
        raise UserError(f"npm could not fetch {PACKAGE} {VERSION} ({first_line(error)}); {advice}") from None
    return path
