"""elman data: known corpora, and a treebank as pairs."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.help import family
from elman.cli.options import AsJson

app = family("data", "Known corpora are for --data. Those that need no download are prepared when first used.")


@app.command(name="list")
def list_all(*, as_json: AsJson = False) -> int:
    """All known corpora."""
    import msgspec

    from elman.data.catalog.prepare import KNOWN

    if as_json:
        show.print_json([msgspec.to_builtins(entry) for entry in KNOWN])
        return 0
    rows = [[entry.name, entry.title, entry.kind, "no" if entry.downloads == () else "yes"] for entry in KNOWN]
    show.print_table("known corpora", ["name", "title", "kind", "download"], rows)
    return 0


@app.command(name="info")
def describe(name: str, /, *, as_json: AsJson = False) -> int:
    """One corpus: licence, addresses, digests, published counts.

    Args:
        name: as `elman data list` shows it
    """
    import msgspec

    from elman.data.catalog.prepare import info

    facts: dict[str, Any] = msgspec.to_builtins(info(name))
    if as_json:
        show.print_json(facts)
        return 0
    for key, value in facts.items():
        print(f"{key}: {value}")
    return 0


@app.command
def prepare(
    name: str,
    /,
    *,
    out: Annotated[Path | None, Parameter(metavar="FOLDER")] = None,
    base_url: Annotated[str | None, Parameter(metavar="URL")] = None,
    as_json: AsJson = False,
) -> int:
    """Fetch and unpack a corpus, check its digest.

    Args:
        name: as `elman data list` shows it
        out: the folder to write (default: the cache folder)
        base_url: fetch the files, under their own names, from here
    """
    import json

    from elman.data.catalog import prepare

    with progress.preparing() as advance:
        folder = prepare.prepare(name, out, advance, base_url=base_url)
    record = folder / "corpus.json"
    downloads = json.loads(record.read_text(encoding="utf-8"))["downloads"] if record.exists() else []
    if as_json:
        show.print_json({"name": name, "folder": str(folder), "downloads": downloads})
        return 0
    for item in downloads:
        note = "as published" if item["verified"] else "computed; no published digest to check it against"
        print(f"{item['file']}: SHA-256 {item['sha256']} ({note})")
    print(f"{name}: ready in {folder}")
    return 0


@app.command
def trees(
    file: Path, out: Path, /, *, keep_tags: bool = False, functions: bool = False, as_json: AsJson = False
) -> int:
    """A treebank as pairs: sentence, tab, linear tree.

    Args:
        file: bracketed trees, as in the Penn Treebank
        out: the file of pairs to write (.tsv)
        keep_tags: keep the parts of speech instead of XX for all
        functions: labels with their functions, NP-SBJ for NP
    """
    from elman.data.pairs.trees import read_trees, to_pair
    from elman.data.text.utf8 import read_text
    from elman.files import write_atomic

    found = read_trees(read_text(file), str(file))
    pairs = [to_pair(tree, not keep_tags, functions) for tree in found]
    write_atomic(out, "".join(f"{words}\t{linear}\n" for words, linear in pairs))
    if as_json:
        show.print_json({"file": str(file), "out": str(out), "trees": len(pairs)})
        return 0
    print(f"{out}: {len(pairs):,} trees")
    return 0
