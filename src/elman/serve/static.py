"""The page without a server: a folder for any static host, in which the browser itself computes the models.

A model is an ONNX graph, or two, by default with weights of eight bits. onnxruntime-web runs them, whose files are
taken from its npm package.
"""

import base64
import hashlib
import shutil
import subprocess
import zlib
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import msgspec

from elman.data.archives import Archive
from elman.errors import UserError, first_line, notice
from elman.export.folder import new_folder
from elman.export.onnx import require_onnx
from elman.files import cache_folder, json_text, replacing, write_atomic
from elman.serve.limits import Limits
from elman.serve.operations import OPERATIONS
from elman.serve.page_files import TYPES, page_files
from elman.serve.service import Service
from elman.serve.services import listed, serve_runs
from elman.serve.static_graphs import Differences
from elman.tasks.run import Run

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'"
)

NEEDS_SERVER = ("adapt",)  # what a page without a server does not answer: weights do not change in it


PAGE = Limits(text=4_000, drawn=1_000)  # what a question to the page may hold at most


class WrittenModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the page: its folder and size, and its differences from the run's (see `Differences`)."""

    name: str
    folder: str
    bytes: int
    difference: float
    difference_written: float
    compared: int


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that was written, its size, and its models."""

    folder: str
    bytes: int
    models: list[WrittenModel]


def export_web(
    runs: Sequence[Run],
    out: Path,
    *,
    package: Path | None = None,
    data: str | None = None,
    int8: bool = True,
    say: Callable[[str], None] = notice,
) -> Written:
    """Write the page with the models of runs into a new folder; without `int8` their weights stay in float32.

    `package` is the npm package of onnxruntime-web (default: fetched by npm, once), `data` the corpus on which graphs
    are compared (default: the data of each run). Raises UserError where the folder is not empty, a package is missing,
    a network cannot be written, or a graph is not the model.
    """
    require_onnx()
    services = serve_runs(runs, Limits())
    archive = fetched(say) if package is None else package
    with new_folder(out) as folder:
        _write_page(folder)
        write_runtime(folder, archive)
        models, contents = [], []
        for place, (service, facts) in enumerate(zip(services.values(), listed(services), strict=True), start=1):
            own = folder / f"model-{place}"
            own.mkdir()
            say(f"writing the graphs of {service.name}")
            found, more = _writer(service)(service, own, data, int8=int8)
            write_atomic(own / "model.json", json_text(more) + "\n")
            kept = [one for one in facts.panels if one not in NEEDS_SERVER]
            shown = msgspec.to_builtins(msgspec.structs.replace(facts, panels=kept))
            contents.append({"folder": own.name, "facts": shown, "difference": found.written})
            models.append(
                WrittenModel(
                    name=service.name,
                    folder=own.name,
                    bytes=_size(own),
                    difference=found.exact,
                    difference_written=found.written,
                    compared=found.compared,
                )
            )
        limits = {"longest_text": PAGE.text, "most_steps": PAGE.steps, "most_drawn": PAGE.drawn}
        opened = {"runs": contents, **limits, "defaults": {one.name: defaults_of(one.question) for one in OPERATIONS}}
        write_atomic(folder / "runs.json", json_text(opened) + "\n")
        write_list(folder)
        size = _size(folder)
    return Written(folder=str(out), bytes=size, models=models)


def defaults_of(question: type[msgspec.Struct]) -> dict[str, Any]:
    """What a question has where it says nothing, for the page."""
    fields = msgspec.structs.fields(question)
    given = {one.name: one.default for one in fields if one.default is not msgspec.NODEFAULT}
    return given | {one.name: one.default_factory() for one in fields if one.default_factory is not msgspec.NODEFAULT}


def _writer(service: Service[Any]) -> Callable[..., tuple[Differences, dict[str, Any]]]:
    found: Callable[..., tuple[Differences, dict[str, Any]]] = resolve_name(service.static)
    return found


def _write_page(folder: Path) -> None:
    """The files of the page, of which two are others here: which backend it asks, and what it may load and begins."""
    own = resources.files("elman.serve") / "web"
    files = dict(page_files()) | {
        one.name: one.read_bytes() for one in own.iterdir() if f".{one.name.rpartition('.')[2]}" in TYPES
    }
    policy = f'<meta http-equiv="content-security-policy" content="{POLICY}">\n  '.encode()
    files["index.html"] = files["index.html"].replace(b"<title>", policy + b"<title>", 1)
    files["index.html"] = files["index.html"].replace(b'src="main.js"', b'src="begin.js"')
    for name, body in files.items():
        if name != "server.js":
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(body)


def write_list(folder: Path) -> None:
    """Write `files.json`: every file of a page with its length and CRC-32, which `files.js` checks."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    listed = {name: [len(body), zlib.crc32(body)] for name, body in sorted(found.items())}
    write_atomic(folder / "files.json", json_text(listed) + "\n")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
"""SHA-512 of the npm package of that version, as the registry states it."""

RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")  # files of the package that the page loads


def cached() -> Path:
    """Where the npm package is in elman's cache, or will be."""
    return cache_folder() / "npm" / f"{PACKAGE}-{VERSION}.tgz"


def fetched(say: Callable[[str], None] = notice) -> Path:
    """The npm package in elman's cache, fetched by npm where it is not there; raises UserError where that fails."""
    path = cached()
    if path.is_file():
        return path
    npm = shutil.which("npm")
    advice = f"get it with `npm pack {PACKAGE}@{VERSION}` and name the file with --package"
    if npm is None:
        raise UserError(f"the page needs the npm package {PACKAGE} {VERSION}, and there is no npm here; {advice}")
    say(f"fetching {PACKAGE} {VERSION} with npm")
    with replacing(path) as temporary:  # npm writes the archive under its own name, piece by piece
        command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--pack-destination", str(temporary.parent), "--silent"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
            temporary.with_name(path.name).replace(temporary)
        except (subprocess.SubprocessError, OSError) as error:
            raise UserError(f"npm could not fetch {PACKAGE} {VERSION} ({first_line(error)}); {advice}") from None
    return path


def write_runtime(folder: Path, package: Path) -> None:
    """The files that the page loads; raises UserError where the package is not the expected one."""
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
