"""Small trained models, and commands in this process: what they print, what they complain of."""

import csv
import functools
import io
import shutil
import sys

import msgspec
from cyclopts.exceptions import CycloptsError

from elman.cli import application, main, mistakes
from elman.config.text import TextData
from elman.tasks.experiment import Experiment
from support import text_runs

TEXTS = {
    "words": TextData(tokenisation="raw", min_count=2),
    "characters": TextData(tokenisation="characters"),
}
MORE_TEXTS = {"exact": TextData(tokenisation="characters", eos="exact")}


@functools.cache
def _trained(name, folder):
    """A folder with a text and a run on it."""
    recipe = text_runs.recipe(epochs=1)
    data = msgspec.structs.replace((TEXTS | MORE_TEXTS)[name], evaluation=recipe.data.evaluation)
    recipe = msgspec.structs.replace(recipe, data=data)
    experiment = Experiment(recipe, folder / "run", data=text_runs.write_corpus(folder / "corpus"))
    experiment.train()
    experiment.finish()
    return folder


def trained(name, tmp_path_factory):
    """The folder of a run on one of these texts, its text beside it: a copy of what is trained once in a process."""
    shared = _trained(name, tmp_path_factory.getbasetemp() / "trained" / name)
    return shutil.copytree(shared, tmp_path_factory.mktemp("runs") / name) / "run"


def is_understood(words):
    """Whether a command line parses; a missing value or an unknown option is printed as `elman` prints it."""
    app = application()
    words = [word for place, word in enumerate(words) if "--plugin" not in words[max(0, place - 1) : place + 1]]
    try:
        line = mistakes.unknown_option(app, words)
        if line is None:
            app.parse_args(words)
    except CycloptsError as error:
        line = mistakes.explain(app, error)
    if line is not None:
        sys.stderr.write(f"{line}\n")
    return line is None


def commands_of(app=None):
    """The names of all commands, such as ("data", "prepare")."""
    app = application() if app is None else app
    for name in app:
        if not name.startswith("-"):
            yield (name,)
            yield from ((name, *rest) for rest in commands_of(app[name]))


def output(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def refusal(capsys, *arguments):
    """The one line that a command prints on stderr before it exits with 2."""
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    lines = captured.err.strip().splitlines()
    assert all(line.startswith("  --encoding ") for line in lines[1:]), lines
    return lines[0]


def complaint(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def table(text):
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def column(rows, name):
    return [float(row[name]) for row in rows if row[name]]
