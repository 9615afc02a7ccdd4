"""elman data: known corpora, and a treebank as pairs."""

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.help import family
from elman.cli.options import AsJson
from elman.data.pairs.trees import read_trees, to_pair
from elman.data.text.utf8 import read_text
from elman.files import write_atomic

app = family("data", "Known corpora are for --data. Those that need no download are prepared when first used.")


@app.command(name="list")
def list_all(*, as_json: AsJson = False) -> None:
    """All known corpora."""
    from elman.data.catalog.entries import KNOWN

    rows = [[entry.name, entry.title, entry.kind, "no" if entry.downloads == () else "yes"] for entry in KNOWN]
    table = ("known corpora", ["name", "title", "kind", "download"], rows)
    show.print_result(as_json, msgspec.to_builtins(KNOWN), table)


@app.command(name="info")
def describe(name: str, /, *, as_json: AsJson = False) -> None:
    """One corpus: licence, addresses, digests, published counts.

    Args:
        name: as `elman data list` shows it
    """
    from elman.data.catalog.prepare import info

    facts: dict[str, Any] = msgspec.to_builtins(info(name))
    show.print_result(as_json, facts, notes=[f"{key}: {value}" for key, value in facts.items()])


@app.command
def prepare(
    name: str,
    /,
    *,
    out: Annotated[Path | None, Parameter(metavar="FOLDER")] = None,
    base_url: Annotated[str | None, Parameter(metavar="URL")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch and unpack a corpus, check its digest.

    Args:
        name: as `elman data list` shows it
        out: the folder to write (default: the cache folder)
        base_url: fetch the files, under their own names, from here
    """
    from elman.data.catalog import prepare

    with progress.preparing() as advance:
        folder = prepare.prepare(name, out, advance, base_url=base_url)
    record = folder / "corpus.json"
    downloads = json.loads(record.read_text(encoding="utf-8"))["downloads"] if record.exists() else []
    checks = {True: "as published", False: "computed; no published digest to check it against"}
    notes = [f"{item['file']}: SHA-256 {item['sha256']} ({checks[item['verified']]})" for item in downloads]
    facts = {"name": name, "folder": str(folder), "downloads": downloads}
    show.print_result(as_json, facts, notes=[*notes, f"{name}: ready in {folder}"])


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
