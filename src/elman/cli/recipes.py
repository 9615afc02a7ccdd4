"""elman recipes."""

import argparse

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "recipes",
        help="the recipes that come with elman",
        description="List the recipes that come with elman, with the published perplexities where there are some.",
    )
    options.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List."""
    from elman.config.toml import shipped

    rows = []
    for path, recipe in shipped():
        published = recipe.expected
        best = None if published is None else published.fine_tuned_test or published.test
        rows.append({"path": str(path), "title": recipe.title, "expected": best})
    if args.json:
        show.print_json(rows)
        return 0
    table = [
        [str(row["path"]), str(row["title"]), "" if row["expected"] is None else f"{row['expected']:g}"] for row in rows
    ]
    show.print_table("recipes", ["recipe", "title", "published test"], table)
    return 0
