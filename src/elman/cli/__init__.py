"""The command line: each command parses, calls, prints. Results go to standard output, logs to standard error.

A command is a function: its parameters are the options, its docstring is their help. Modules of commands are imported
when a command is used, so that `elman --help` answers at once.
"""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from cyclopts import App, Group, Parameter

import elman
from elman.cli import kinds, mistakes, paths
from elman.cli.help import ARGUMENTS, OPTIONS, PlainHelp, shown_default
from elman.errors import ENCODING, UserError, one_line
from elman.files import expanded

COMMANDS = {
    "Begin": {
        "demo": ("train:demo", "Learn Shakespeare in a few minutes on a CPU, beside baselines, with a report."),
        "train": ("train:train", "Train a model from a recipe, or on data alone."),
    },
    "Use": {
        "evaluate": (
            "evaluate:evaluate",
            "Perplexity of a split (of music and series: nats per step; of trees and tags: what is right).",
        ),
        "generate": ("generate:generate", "Write text, token by token."),
        **kinds.commands("Use"),
        "score": ("score:score", "Log-probability and surprisal of every token, word or sentence of a text."),
        "rescore": ("rescore:rescore", "Choose among the n best hypotheses of a recogniser."),
        "export": ("export:export", "Write a model for other programs: ONNX, or a program of torch."),
        "import": ("imports:app", "Models of other programs as runs: language models of fastai."),
        "serve": ("serve:serve", "A page to look into models while typing, and a JSON interface to them."),
        "embed": ("embed:embed", "Hidden states of every token of a text, or word vectors."),
    },
    "Study": {
        "compare": ("compare:compare", "Is run B better than run A? Paired tests on texts, minimal pairs, sentences."),
        **kinds.commands("Study"),
        "minimal-pairs": ("minimal_pairs:minimal_pairs", "Which sentence of a minimal pair is more probable?"),
        "reading-times": (
            "reading_times:reading_times",
            "Do the surprisals of models predict how long people read?",
        ),
        "analyze": ("analyze:app", "Look into a model: rank, mixtures, stability, dynamics, rare words and others."),
        "ngram": ("ngram:app", "n-gram models as ARPA files: train, score, describe, prune."),
        "grammar": ("grammar:app", "Sentences of a grammar with number agreement: write them, test a model on them."),
        "lab": ("lab:app", "Networks and learning rules side by side on classic tasks."),
        "sweep": ("sweep:sweep", "Train a recipe with other settings and seeds, and find the best."),
        "reproduce": ("reproduce:reproduce", "Train, measure and judge what the papers claim."),
    },
    "Look up": {
        "table": (
            "table:table",
            "The results of several runs as Markdown, LaTeX or CSV, mean and deviation by recipe.",
        ),
        "report": ("lookup:report", "One self-contained HTML page about one run or several."),
        "info": (
            "lookup:info",
            "What is in a run: parameters by block, data, best epoch, digests; or how fast the machine is.",
        ),
        "data": ("lookup:app", "Known corpora: list, describe, prepare; trees and programs as pairs."),
        "docs": ("docs:docs", "The pages of the documentation, without a network."),
        "models": ("models:app", "Trained models by name: list, describe, fetch, publish."),
        "recipes": ("recipes:recipes", "The recipes that come with elman."),
    },
}
"""By group: each command's function or application, of this package or by its whole name; its line in the help."""


def application() -> App:
    """The application with all commands."""
    app = App(
        name="elman",
        help="Recurrent models of words, characters, pairs of texts, trees, tags, music and series: train, evaluate,"
        " sample, score.\n\nBegin with `elman demo`, or with a text of your own: elman train novel.txt. `elman COMMAND"
        " --help` describes a command; `elman --install-completion` lets the shell complete commands and options."
        " `--plugin FILE`, anywhere on a line, adds the cells, outputs, activations, tasks or claims of a Python file."
        " `--encoding NAME`, anywhere on a line, is how texts are read that are not UTF-8.",
        version=lambda: f"elman {elman.__version__}",
        default_parameter=Parameter(negative=(), allow_repeating=True, show_default=shown_default),
        config=paths.expand,
        group_arguments=ARGUMENTS,
        group_parameters=OPTIONS,
        group_commands=Group("Commands", sort_key=8),
        help_formatter=PlainHelp(),
        help_format="plaintext",
        version_format="plaintext",
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for place, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=place)
        for order, (name, (path, line)) in enumerate(commands.items()):
            module = path if path.startswith("elman.") else f"elman.cli.{path}"
            app.command(module, name=name, help=line, group=group, sort_key=order)
    about = Group("About", sort_key=9)
    app.register_install_completion_command(help="Install completion for the shell in use.", group=about)
    for flag in ("--help", "--version"):
        app[flag].group = about
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 2 for the user's mistakes, 130 when stopped by a signal."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if os.name == "nt":  # whose files have the code page of the country
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        sys.stderr = LastingLog(sys.stderr)
        os.environ.setdefault("ELMAN_JOBS", "auto")  # processes that read a large text: all cores
    encoding = os.environ.get(ENCODING)
    try:
        app = application()
        _require_memory()
        tokens = _use_anywhere(tokens)
        if (line := mistakes.unknown_option(app, tokens)) is not None:
            raise UserError(line)
        status = app(tokens)
        sys.stdout.flush()
        return status or 0
    except KeyboardInterrupt:
        if arguments is None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process ends
        print("elman: stopped", file=sys.stderr)
        return 130
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):  # of a table's printer
            raise
        discard(sys.stdout)
        return 0
    except Exception as error:
        if (line := mistakes.explain(app, error)) is None:
            raise
        if isinstance(error, OSError):
            discard(sys.stdout)
        with contextlib.suppress(OSError):
            print(f"elman: {one_line(line)}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 2
    finally:
        os.environ.pop(ENCODING, None)
        os.environ.update({ENCODING: encoding} if encoding else {})


def _require_memory() -> None:
    """Refuse a limit of memory at which torch ends without a word, and load what would wait for memory for ever."""
    with contextlib.suppress(ImportError):  # Windows has no such limit
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if 0 <= most < 1 << 30:
            raise UserError(f"a process may have {most >> 20} MB of memory, and torch needs 1 GB; raise `ulimit -v`")
        if most != resource.RLIM_INFINITY:
            import scipy.special  # noqa: F401 - OpenBLAS asks again and again where it gets none


def _use_anywhere(tokens: list[str]) -> list[str]:
    """The command line without `--plugin FILE` and `--encoding NAME`, which may stand anywhere, and take effect."""
    kept, values = [], dict[str, list[str]]({"--plugin": [], "--encoding": []})
    rest = iter(tokens)
    for token in rest:
        name, equals, value = token.partition("=")
        if name not in values:
            kept.append(token)
            continue
        given = value if equals else next(rest, None)
        if not given or given.startswith("-"):
            what = "the name of a file" if name == "--plugin" else "the name of an encoding"
            raise UserError(f"{name} needs {what}")
        values[name].append(given)
    if values["--encoding"]:
        from elman.data.text import encodings

        os.environ[ENCODING] = encodings.lookup(values["--encoding"][-1])  # of child processes too
    files = [str(expanded(file).absolute()) for file in values["--plugin"]]
    if files:
        from elman.config import loading

        for file in files:
            loading.load_file(Path(file))
        before = os.environ.get("ELMAN_PLUGINS")
        os.environ["ELMAN_PLUGINS"] = os.pathsep.join([*([before] if before else []), *files])  # of child processes too
    return kept


class LastingLog(io.TextIOBase):
    """A stream of logs: where it cannot be written, as when its reader has ended, lines are lost and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._lasting():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._lasting():
            self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @contextlib.contextmanager
    def _lasting(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            discard(self._stream)


def discard(stream: TextIO) -> None:
    """Let a stream that cannot be written go nowhere, with what it still holds."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
