"""elman export: a trained model in the formats of other programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common
from elman.cli.options import DataSource, writable
from elman.errors import UserError

ExportedRun = Annotated[Path, Parameter(help="a run on text; with --to web also on music or pairs")]
FurtherRuns = Annotated[Path, Parameter(help="with --to web, further runs of the page")]


def export(
    run: ExportedRun,
    /,
    *others: FurtherRuns,
    out: Annotated[Path, Parameter(metavar="FOLDER", validator=writable)],
    to: Literal["onnx", "torch", "hf", "web", "arpa"] = "onnx",
    int8: bool = False,
    half: bool = False,
    sherpa: bool = False,
    data: DataSource = None,
    push: Annotated[str | None, Parameter(metavar="USER/NAME")] = None,
    private: bool = False,
    dry_run: bool = False,
    package: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    float32: bool = False,
    common: Common = Common(),
) -> None:
    """Write a trained model for other programs: a step with its state in and out, a model of transformers, a page.

    The folder has the graph, the words, config.json and a README. What was written is compared with the model over 200
    tokens, and its perplexity measured on 5,000 tokens of the valid split.

    A page (--to web) holds one run or several, on text, music or pairs; two on text are shown side by side.

    Args:
        out: a new folder
        to: onnx; torch, a program of torch.export; hf, a folder that Hugging Face's transformers opens; or web, the
            page of `elman serve` without a server (arpa, the form of n-gram models, is refused with the command that
            writes it)
        int8: also write an ONNX graph with weights of eight bits
        half: also write an ONNX graph in float16
        sherpa: the form of recurrent language models in sherpa-onnx, for shallow fusion
        data: a corpus whose valid split is read (default: the data of the run)
        push: with --to hf, send the folder to the Hub of Hugging Face; the token is HF_TOKEN, or from `hf auth
            login`
        private: only the owner sees what is sent
        dry_run: list what would be sent, and send nothing
        package: the npm package of onnxruntime-web, for --to web (default: fetched once by npm)
        float32: with --to web, keep the weights as they are (default: weights of eight bits, a quarter of the size)
    """
    from elman.export.folder import Forms, export_onnx, export_program

    if to == "arpa":
        raise UserError(
            "--to arpa: a network has no n-grams, whose form ARPA is; `elman ngram train --like RUN --out FILE.arpa`"
            " estimates an n-gram model from the run's training text, and `elman ngram export` writes such a file again"
        )
    if to != "onnx" and (int8 or half or sherpa):
        raise UserError("--int8, --half and --sherpa belong to --to onnx; leave them out")
    if to != "web":
        for used, what in ((package is not None, "--package belongs"), (float32, "--float32 belongs")):
            if used:
                raise UserError(f"{what} to --to web; leave it out")
        if others:
            raise UserError(f"--to {to} writes one run; give one, or several with --to web")
    if push is None and (private or dry_run):
        raise UserError("--private and --dry-run belong to --push; add it, or leave them out")
    if push is not None:
        from elman.export.hub import require_name

        if to != "hf":
            raise UserError("--push belongs to --to hf; add it")
        require_name(push)

    def say(line: str) -> None:
        progress.log().print(line)

    if to == "web":
        _web([run, *others], out, package, data, common, int8=not float32)
        return
    loaded = common.open_text(run)
    if to == "onnx":
        made = export_onnx(loaded, out, Forms(int8, half, sherpa), data=data, say=say)
    elif to == "torch":
        made = export_program(loaded, out, data=data)
    else:
        from elman.export.hub import export_hub

        made = export_hub(loaded, out, data=data)
    rows = [["the model", "", "", "" if made.perplexity is None else f"{made.perplexity:.2f}"]]
    rows += [
        [
            one.name,
            f"{one.bytes:,}",
            f"{one.difference:.2g}",
            "" if one.perplexity is None else f"{one.perplexity:.2f}",
        ]
        for one in made.files
    ]
    columns = f"perplexity, {made.tokens:,} tokens" if made.tokens else "perplexity"
    tables = [(f"{made.folder}: {run}", ["", "bytes", "largest difference, nats", columns], rows)]
    facts, notes = msgspec.to_builtins(made), []
    if push is not None:
        from elman.export.hub import push as send

        sent = send(out, push, private=private, dry_run=dry_run)
        facts["pushed"] = msgspec.to_builtins(sent)
        listed = [[one.name, f"{one.bytes:,}"] for one in sent.files]
        whose = "private" if private else "public"
        tables.append((f"{'would be sent' if dry_run else 'sent'} to {push} ({whose})", ["file", "bytes"], listed))
        notes = [] if dry_run else [f"commit: {sent.commit}"]
    show.print_result(common.as_json, facts, *tables, notes=notes)


def _web(
    folders: Sequence[Path], out: Path, package: Path | None, data: str | None, common: Common, *, int8: bool
) -> None:
    from elman.serve.static import export_web
    from elman.tasks.open import open_run

    device = common.use()
    runs = [open_run(folder, device) for folder in folders]
    made = export_web(runs, out, package=package, data=data, int8=int8, say=progress.log().print)
    rows = [
        [one.name, one.folder, f"{one.bytes:,}", f"{one.difference:.2g}", f"{one.difference_written:.2g}"]
        for one in made.models
    ]
    columns = ["model", "folder", "bytes", "largest difference, nats: float32", "as written"]
    notes = [f"{made.bytes:,} bytes in all", f"try it: python -m http.server --directory {made.folder}"]
    table = (f"{made.folder}: a page", columns, rows)
    show.print_result(common.as_json, msgspec.to_builtins(made), table, notes=notes)
