"""elman report, info and data: what there is to look up about runs and known corpora."""

import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common
from elman.cli.help import family
from elman.cli.options import AsJson, OutFile, RunFolders, Settable, refuse, writable
from elman.cli.progress import duration
from elman.config.parts import tag_of
from elman.config.text import TextData
from elman.config.toml import load_data
from elman.data.catalog import known
from elman.data.catalog.download import require_address
from elman.data.catalog.known import KNOWN, is_known
from elman.data.text.corpus import open_corpus
from elman.data.text.sources import one_text
from elman.data.text.utf8 import read_text
from elman.data.trees.brackets import read_trees, to_pair
from elman.errors import UserError, counted
from elman.files import expanded, write_atomic
from elman.formats import read_json
from elman.report.folder import read_folders


def report(runs: RunFolders, /, *, out: OutFile = None, as_json: AsJson = False) -> None:
    """Write one self-contained HTML page about one run or several.

    Learning curves, results beside published numbers, samples, surprisal, configuration. Several runs are laid over
    each other.

    Args:
        out: the page (default: RUN/report.html; report.html here for several runs)
    """
    from elman.report.page import write_page

    found, others = read_folders(runs)
    show.say_left_out(others)
    page = write_page(found, out)
    show.print_result(as_json, {"report": str(page)}, notes=[f"report: {page}"])


def info(run: Path | None = None, /, *, machine: bool = False, common: Common = Common()) -> None:
    """Show what is in a run, or how fast the machine multiplies.

    Parameters by block, where its data came from, its best epoch, and digests of the data and the weights. With
    --machine the speed of matrix products by library and precision, and the precision that `auto` stands for.

    Args:
        run: a run folder
        machine: measure the machine instead of showing a run, and remember what --precision auto is on it
    """
    if machine == (run is not None):
        raise UserError("elman info needs a run folder, or --machine")
    if run is None:
        _machine(common)
    else:
        _run(run, as_json=common.as_json)


def _machine(common: Common) -> None:
    import torch

    from elman.network.device import processor_name
    from elman.network.fast import preference

    device = common.place()
    measured = preference.measure(device)
    gain = preference.remember(device, preference.gain(measured)).gain
    auto = preference.preferred(gain)
    name, threads = processor_name(device), torch.get_num_threads()
    found = {
        "processor": name,
        "device": str(device),
        "threads": threads,
        "peaks": [peak._asdict() for peak in measured],
        "gain": gain,
        "auto": auto,
    }
    rows = [[peak.library, peak.precision, f"{peak.gflops:,.0f}"] for peak in measured]
    notes = [f"bf16 is {gain:.2f} times as fast as float32, so that --precision auto is {auto} from now on"]
    title = f"matrix products, {name}, {device}, {counted(threads, 'thread')}"
    show.print_result(common.as_json, found, (title, ["library", "precision", "GFLOP/s"], rows), notes=notes)


def _run(run: Path, *, as_json: bool) -> None:
    from elman.learning.checkpoint import digest_of, load, model_tensors
    from elman.learning.progress import read_progress
    from elman.tasks.open import open_run

    loaded = open_run(run)
    facts, parameters = loaded.saved, dict(loaded.model.named_parameters())
    found: dict[str, Any] = {
        "run": str(run),
        "title": loaded.recipe.title,
        "parameters": sum(tensor.numel() for tensor in parameters.values()),
        "blocks": _blocks(parameters),
        loaded.reads: len(loaded.inputs),
        "data": loaded.facts["source"],
        "data_digest": loaded.facts["digest"],
        "best_step": facts["step"],
        "best_epoch": round(facts["epoch"], 3),
        "best_valid_nll": facts["valid_nll"],
        "averaged": facts.get("averaged", False),
        "model_digest": digest_of(model_tensors(loaded.model)),
    }
    last = loaded.path / "checkpoint.safetensors"
    if last.exists():
        tensors, facts = load(last, "progress")
        reached = read_progress(last, facts["progress"])
        found["last_step"] = reached.step
        found["finished"] = reached.finished
        found["last_digest"] = digest_of(tensors)
    rows = []
    for key, value in found.items():
        if key == "blocks":
            rows += [[f"  {block}", f"{count:,}"] for block, count in value.items()]
        else:
            rows.append([key.replace("_", " "), f"{value:,}" if type(value) is int else str(value)])
    show.print_result(as_json, found, (loaded.recipe.title, ["", "value"], rows))


def _blocks(parameters: dict[str, Any]) -> dict[str, int]:
    """Parameters of each block: encoder, each layer of the core, contexts, choice."""
    blocks: dict[str, int] = {}
    for name, tensor in parameters.items():
        parts = name.split(".")
        block = ".".join(parts[:3] if parts[:2] == ["core", "layers"] else parts[: min(2, len(parts) - 1)])
        blocks[block] = blocks.get(block, 0) + tensor.numel()
    return blocks


app = family("data", "Known corpora are for --data. Those that need no download are prepared when first used.")
app.command("elman.cli.programs:programs", name="programs", help="Programs and what they print, as pairs.")


@app.command(name="list")
def list_all(*, as_json: AsJson = False) -> None:
    """All known corpora."""
    rows = [[entry.name, entry.title, entry.kind, "no" if entry.downloads == () else "yes"] for entry in KNOWN]
    table = ("known corpora", ["name", "title", "kind", "download"], rows)
    show.print_result(as_json, msgspec.to_builtins(KNOWN), table)


@app.command(name="info")
def describe(name: str, /, *, skip_unreadable: bool = False, as_json: AsJson = False) -> None:
    """One corpus: licence, addresses, digests, published counts; of your own data how they would be read.

    Args:
        name: as `elman data list` shows it, or data as for `elman train`
        skip_unreadable: of music, leave out files that cannot be read
    """
    if not is_known(name) and (Path(name).exists() or one_text(Path(name))):
        _described(name, ["data.skip_unreadable=true"] if skip_unreadable else [], as_json=as_json)
        return
    facts: dict[str, Any] = msgspec.to_builtins(known.info(name))
    show.print_result(as_json, facts, notes=[f"{key}: {value}" for key, value in facts.items()])


def _described(source: str, settings: list[str], *, as_json: bool) -> None:
    """What some data look like, and what is in them as the recipe reads them that `elman train` would choose."""
    from elman.tasks.proposal.choose import read

    found, proposal, task, _ = read(source, settings)
    facts = {"source": source, "kind": found.kind, **task.corpus.facts(), "digest": task.digest}
    notes = [f"{source}: {found.what}", *proposal.reasons, *task.summary()]
    show.print_result(as_json, facts, notes=notes)


@app.command
def prepare(
    name: str,
    /,
    *,
    out: Annotated[Path | None, Parameter(metavar="FOLDER", validator=writable)] = None,
    base_url: Annotated[str | None, Parameter(metavar="URL")] = None,
    recipe: Annotated[Path | None, Parameter(metavar="RECIPE")] = None,
    settings: Settable = (),
    as_json: AsJson = False,
) -> None:
    """Fetch and unpack a corpus, check its digest; or count and encode a text as a recipe reads it.

    With --recipe the words of the text are counted and its ids are written into the cache, by all cores (or as many as
    the variable ELMAN_JOBS says), so that training begins at once. What was interrupted is continued.

    Args:
        name: as `elman data list` shows it; with --recipe also a file, a folder, or a quoted pattern such as
            'news/*.txt.gz'
        out: the folder to write, whose other files are kept (default: the cache folder)
        base_url: fetch the files, under their own names, from here
        recipe: read the text as this recipe on text does
    """
    from elman.data.catalog.prepare import prepare

    name = str(expanded(name))
    if base_url is not None:
        require_address(base_url, "--base-url")
    if recipe is None:
        refuse(["--set"] if settings else [], "belongs to --recipe; add it")
        if not is_known(name) and (Path(name).exists() or one_text(Path(name))):
            raise UserError(f"{name}: give --recipe too, by which the text is read, such as recipes/text/prose.toml")
    elif not is_known(name):
        refuse([one for one, value in {"--out": out, "--base-url": base_url}.items() if value], "is for known corpora")
        _encode(name, recipe, settings, as_json=as_json)
        return
    with progress.preparing() as advance:
        folder = prepare(name, out, advance, base_url=base_url, keep=out is not None)
    if recipe is not None:
        _encode(name if out is None else str(folder), recipe, settings, as_json=as_json)
        return
    record = folder / "corpus.json"
    downloads = read_json(record, _Prepared).downloads if record.exists() else []
    checks = {True: "as published", False: "computed; no published digest to check it against"}
    notes = [f"{item.file}: SHA-256 {item.sha256} ({checks[item.verified]})" for item in downloads]
    facts = {"name": name, "folder": str(folder), "downloads": msgspec.to_builtins(downloads)}
    show.print_result(as_json, facts, notes=[*notes, f"{name}: ready in {folder}"])


class _Download(msgspec.Struct):
    """What was downloaded for a known corpus, as its folder records it."""

    file: str
    urls: list[str]
    sha256: str
    verified: bool


class _Prepared(msgspec.Struct):
    downloads: list[_Download]


def _encode(source: str, path: Path, settings: tuple[str, ...], *, as_json: bool) -> None:
    """Encode a text as a recipe reads it, and print its counts."""
    data = load_data(path, settings)
    if not isinstance(data, TextData):
        raise UserError(f"{path}: a recipe for {tag_of(data)}; only texts are prepared, other data are read each time")
    started = time.monotonic()
    with progress.preparing() as advance:
        corpus = open_corpus(source, data.options, progress=advance)
    seconds = time.monotonic() - started
    tokens = {name: len(split.tokens) for name, split in corpus.splits.items()}
    facts = {"source": source, **corpus.facts(), "digest": corpus.digest, "seconds": round(seconds, 2)}
    rows = [
        ["vocabulary", f"{len(corpus.vocabulary):,}"],
        *([f"{name} tokens", f"{n:,}"] for name, n in tokens.items()),
    ]
    notes = [f"ready in {duration(seconds)}, {sum(tokens.values()) / max(seconds, 1e-9):,.0f} tokens/s"]
    show.print_result(as_json, facts, (source, ["", "counts"], rows), notes=notes)


@app.command
def trees(
    file: Path, out: Path, /, *, keep_tags: bool = False, functions: bool = False, as_json: AsJson = False
) -> None:
    """A treebank as pairs: sentence, tab, linear tree.

    Args:
        file: bracketed trees, as in the Penn Treebank
        out: the file of pairs to write (.tsv)
        keep_tags: keep the parts of speech instead of XX for all
        functions: labels with their functions, NP-SBJ for NP
    """
    found = read_trees(read_text(file), str(file))
    pairs = [to_pair(tree, not keep_tags, functions) for tree in found]
    write_atomic(out, "".join(f"{words}\t{linear}\n" for words, linear in pairs))
    facts = {"file": str(file), "out": str(out), "trees": len(pairs)}
    show.print_result(as_json, facts, notes=[f"{out}: {len(pairs):,} trees"])
