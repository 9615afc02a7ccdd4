"""elman data."""

import argparse
from pathlib import Path
from typing import Any

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "data",
        help="known corpora: list, info, prepare; trees of a treebank as pairs",
        description="Known corpora, for --data. Those that need no download are prepared when they are first used.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="all known corpora")
    options.add_json(listing)
    listing.set_defaults(run=list_all)
    describing = actions.add_parser("info", help="one corpus: licence, addresses, digests, published counts")
    describing.add_argument("name", metavar="NAME", help="as `elman data list` shows it")
    options.add_json(describing)
    describing.set_defaults(run=describe)
    preparing = actions.add_parser("prepare", help="fetch and unpack a corpus, check its digest")
    preparing.add_argument("name", metavar="NAME", help="as `elman data list` shows it")
    preparing.add_argument("--out", type=Path, metavar="FOLDER", help="where to (default: the cache folder)")
    preparing.add_argument("--base-url", metavar="URL", help="fetch the files, under their own names, from here")
    options.add_json(preparing)
    preparing.set_defaults(run=prepare)
    planting = actions.add_parser("trees", help="a treebank as pairs: sentence, tab, linear tree")
    planting.add_argument("file", metavar="FILE", type=Path, help="bracketed trees, as the Penn Treebank has them")
    planting.add_argument("out", metavar="OUT", type=Path, help="where to write the pairs (.tsv)")
    planting.add_argument("--keep-tags", action="store_true", help="parts of speech as they are, not all XX")
    planting.add_argument("--functions", action="store_true", help="labels with their functions, NP-SBJ for NP")
    options.add_json(planting)
    planting.set_defaults(run=trees)


def list_all(args: argparse.Namespace) -> int:
    """List."""
    import msgspec

    from elman.data.catalog.prepare import KNOWN

    if args.json:
        show.print_json([msgspec.to_builtins(entry) for entry in KNOWN])
        return 0
    rows = [[entry.name, entry.title, entry.kind, "no" if entry.downloads == () else "yes"] for entry in KNOWN]
    show.print_table("known corpora", ["name", "title", "kind", "download"], rows)
    return 0


def describe(args: argparse.Namespace) -> int:
    """Describe one."""
    import msgspec

    from elman.data.catalog.prepare import info

    facts: dict[str, Any] = msgspec.to_builtins(info(args.name))
    if args.json:
        show.print_json(facts)
        return 0
    for key, value in facts.items():
        print(f"{key}: {value}")
    return 0


def prepare(args: argparse.Namespace) -> int:
    """Prepare one."""
    import json

    from elman.data.catalog import prepare

    with show.preparing() as progress:
        folder = prepare.prepare(args.name, args.out, progress, base_url=args.base_url)
    record = folder / "corpus.json"
    downloads = json.loads(record.read_text(encoding="utf-8"))["downloads"] if record.exists() else []
    if args.json:
        show.print_json({"name": args.name, "folder": str(folder), "downloads": downloads})
        return 0
    for item in downloads:
        note = "as published" if item["verified"] else "computed; no published digest to check it against"
        print(f"{item['file']}: SHA-256 {item['sha256']} ({note})")
    print(f"{args.name}: ready in {folder}")
    return 0


def trees(args: argparse.Namespace) -> int:
    """Write a treebank as pairs."""
    from elman.data.pairs.trees import read_trees, to_pair
    from elman.data.text.utf8 import read_text
    from elman.files import write_atomic

    found = read_trees(read_text(args.file), str(args.file))
    pairs = [to_pair(tree, not args.keep_tags, args.functions) for tree in found]
    write_atomic(args.out, "".join(f"{words}\t{linear}\n" for words, linear in pairs))
    if args.json:
        show.print_json({"file": str(args.file), "out": str(args.out), "trees": len(pairs)})
        return 0
    print(f"{args.out}: {len(pairs):,} trees")
    return 0
