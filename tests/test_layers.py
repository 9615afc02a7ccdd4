"""Imports point one way, from what runs to what it is made of; docs/design.md prints the table of the layers."""

import ast
import fnmatch
import functools
from pathlib import Path

import elman

ROOT = Path(elman.__file__).parent
DESIGN = ROOT.parents[1] / "docs" / "design.md"

LAYERS = (
    (
        ("errors", "files", "formats", "jobs"),
        "user errors; files written completely or not at all; JSON and TOML; locks, processes, launchers, results",
    ),
    (("config",), "recipes as typed records, TOML, errors that name the key"),
    (("kinds.*.record",), "the records of the kinds of data besides text"),
    (("drawing",), "figures and pages, independent of runs"),
    (("data",), "text, grammars and classic tasks; known corpora; windows"),
    (("kinds",), "how tags, series, music, trees and pairs are read"),
    (
        ("network.device", "network.state", "network.dropout", "network.initialisation", "network.spectrum"),
        "devices, recurrent state as a value, dropout, initialisation; largest singular values and eigenvalues",
    ),
    (("network.output.activation",), "the g of p(y) = g(z_y) / sum g(z_v)"),
    (
        ("network.fast",),
        "products, their precision and speed; recurrences (`scan`) and likelihoods (`nll`) in their fast forms",
    ),
    (
        ("network.encoders", "network.cells"),
        "symbols to vectors; one cell per file: its equations",
    ),
    (("network.trees",), "compositions of the nodes of trees"),
    (("network.cores",), "stacks, windows, attention, reservoirs, networks over trees"),
    (("network.output", "network.stability"), "log-probabilities of symbols; certificates of the dynamics"),
    (
        ("network.model", "network.seq2seq", "network.tree_model", "network.tag_model"),
        "a language model; one whose state a source prepares; models of the nodes of trees and of the tags of words",
    ),
    (("network.build",), "builds a network from a recipe"),
    (("objective", "decoding"), "the loss and its penalties; sampling and beam search"),
    (("learning",), "learning rules, updates, constraints, checkpoints, the trainer"),
    (("evaluation",), "perplexity, adaptation, n-grams, minimal pairs, statistics"),
    (("nn",), "the parts as torch modules, functions and a training loop, for programs of one's own"),
    (("tasks",), "experiments, runs and texts: open, train, evaluate, sample, adapt, report"),
    (
        (
            *(f"kinds.*.{name}" for name in ("run", "task", "evaluation", "measures", "baselines")),
            *(f"kinds.*.{name}" for name in ("constraint", "drawing", "proposal", "backtest")),
            *(f"kinds.*.{name}" for name in ("attention", "phrases")),
        ),
        "what is done with a kind of data: train, evaluate, sample, adapt, report",
    ),
    (("report",), "the HTML report of runs"),
    (("hf",), "a language model and its tokeniser as transformers calls them"),
    (("export",), "trained models in the formats of other programs"),
    (("analysis",), "ranks, mixtures, dynamics, grammar"),
    (("serve",), "a trained model behind a page and a JSON interface"),
    (("kinds.*.serving", "kinds.*.static"), "a kind of data behind the page"),
    (("study",), "many runs, a table, a page: published claims, sweeps, the laboratory"),
    (("testing",), "what every part of a plug-in must fulfil"),
    (("cli", "__main__"), "the command line"),
    (("kinds.*.commands", "kinds.*.metrics"), "the commands of a kind of data"),
)
"""Rooms and what they hold, lowest first.

A module imports only from its own layer and from those below; the longest name counts.
"""


@functools.cache
def room_of(module):
    """The room of a module, named within the package; None: it is in none."""
    found = [room for rooms, _ in LAYERS for room in rooms if fnmatch.fnmatch(f"{module}.", f"{room}.*")]
    return max(found, key=len, default=None)


@functools.cache
def layer_of(module):
    """The layer of a module."""
    room = room_of(module)
    heights = [height for height, (rooms, _) in enumerate(LAYERS) if room in rooms]
    assert heights, f"{module} has no place in LAYERS"
    return heights[0]


def table():
    """The table of docs/design.md."""
    rows = [f"| {', '.join(f'`{room}`' for room in rooms)} | {what} |" for rooms, what in LAYERS]
    return "\n".join(["| packages and modules, lowest first | what they hold |", "|---|---|", *rows])


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def is_module(name):
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


@functools.cache
def imports(path):
    """What a file imports of the package, at its top or within a function."""
    return list(_imports(path))


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        yield from imported(node)


def imported(node):
    if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "elman":
        inner = node.module.removeprefix("elman").removeprefix(".")
        for alias in node.names:
            name = f"{inner}.{alias.name}".removeprefix(".")
            yield name if is_module(name) else inner
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
        yield from (name.removeprefix("elman.") for name in names if name.startswith("elman."))


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
BARE = {"", "network"}
"""Packages that only hold others."""


def test_imports_point_downwards():
    upwards = [
        f"{module} imports {name}"
        for module in sorted(FILES.keys() - BARE)
        for name in imports(FILES[module])
        if name and layer_of(name) > layer_of(module)
    ]
    assert not upwards, "\n".join(upwards)


def test_general_rooms_know_no_kind_of_data():
    """A kind registers what it offers: in its record, its run and its package."""
    assert not [
        f"{module} imports {name}"
        for module in sorted(FILES)
        if not module.startswith("kinds")
        for name in imports(FILES[module])
        if name.startswith("kinds.")
    ]


PLAIN = (
    *("__main__", "cli", "cli.train", "tasks.proposal.choose", "tasks.experiment", "tasks.text.task", "report.page"),
    *("network.cores.stack", "network.cells.lstm", "network.encoders.lookup", "network.output.flat", "network.build"),
    *("learning.rules", "learning.bptt", "learning.optimisers", "evaluation.ngram.kneser_ney", "data.text.facts"),
)
"""What `elman train TEXT` imports by itself; the rest are what these import at their top."""


def test_a_plain_text_imports_nothing_of_other_kinds_tasks_and_machines():
    found, left = set(), list(PLAIN)
    while left:
        module = left.pop()
        if module not in found and module in FILES:
            found.add(module)
            left += [module.rpartition(".")[0], *at_its_top(ast.parse(FILES[module].read_text()).body)]
    rooms = (
        "kinds.",
        "data.grammar",
        "data.trees",
        "data.catalog.p",
        "export",
        "serve",
        "study",
        "analysis",
        "tasks.mo",
    )
    files = (
        "fast.persistent",
        "fast.triton_rows",
        "fast.int8",
        "learning.single_step",
        "learning.processes",
        "fast.gru",
    )
    assert not [one for one in found if one.startswith(rooms) or one.endswith(files)]
    assert len(found) <= 145
    assert sum(len(FILES[one].read_text().splitlines()) for one in found) <= 20_000


def at_its_top(body):
    """What statements import of the package, functions and what only types need apart."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from at_its_top(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from at_its_top(node.body)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from imported(node)


def test_rooms_import_in_no_circle():
    """Between the rooms of one layer imports run one way too."""
    arrows = {
        (room_of(module), room_of(name)) for module, path in FILES.items() for name in imports(path) if module and name
    }
    assert not [pair for pair in arrows if pair[0] != pair[1] and pair[::-1] in arrows]


def test_the_top_of_the_package_stays_small():
    rooms = [path for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert len(rooms) + len(list(ROOT.glob("*.py"))) <= 26
    assert len(list(ROOT.glob("*.py"))) <= 8


def test_no_file_is_too_long():
    assert not [module for module, path in FILES.items() if len(path.read_text().splitlines()) > 350]


def test_docs_print_these_layers():
    assert table() in DESIGN.read_text(), f"docs/design.md should hold:\n{table()}"


def test_the_lowest_layers_do_without_torch():
    """Recipes are read by commands that should answer at once."""
    lowest = [name for name in FILES.keys() - BARE if layer_of(name) <= layer_of("kinds.tags.record")]
    names = [
        (module, (node.module if isinstance(node, ast.ImportFrom) else alias.name) or "")
        for module in lowest
        for node in ast.walk(ast.parse(FILES[module].read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    assert not [module for module, name in names if name.split(".")[0] == "torch"]


def test_the_packages_of_kinds_import_nothing():
    """The command line asks them for their commands."""
    packages = [path for module, path in FILES.items() if path.name == "__init__.py" and module.startswith("kinds")]
    assert len(packages) == 6
    assert not [
        path
        for path in packages
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
