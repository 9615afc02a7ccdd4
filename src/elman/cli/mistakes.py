"""What is wrong with a command line, in one line that names the option and, where one is near, the right spelling."""

import difflib
import errno
import os
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from cyclopts import App
from cyclopts.argument import Argument
from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from elman.errors import UserError

SYNONYMS = {
    "--tokens": ("--length", "--max-tokens", "--num-tokens", "--n"),
    "--beam": ("--beam-size",),
    "--out": ("--output",),
    "--lr": ("--learning-rate",),
    "--batch-size": ("--batch",),
    "--pairs": ("--pairs-file",),
    "generate": ("sample",),
    "evaluate": ("test", "perplexity", "tune"),
}
"""Options and commands, and what other programs call them."""

_CURES = {
    errno.ENOENT: "there is no such file; check the path",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EISDIR: "it is a folder; give a file",
    errno.ENOTDIR: "a part of the path is a file; choose another",
    errno.ENOSPC: "free some space",
}

_NO_MEMORY = (
    "allocate memory",
    "DefaultCPUAllocator",
    "could not create a primitive",
    "std::bad_alloc",
    "can't start new thread",
    "failed to map segment from shared object",
)
"""What torch, oneDNN, Python and the loader report where there is no more memory."""

_OPTIONS: dict[Any, dict[str, bool]] = {}

_NO_FLOAT64 = "--device mps has no float64, in which this is computed; write --device cpu"


def command_of(app: App, tokens: Sequence[str]) -> tuple[tuple[str, ...], App, list[str]]:
    """The names of a command, the command, and the tokens after it; its help is its docstring, if it has one."""
    chain, apps, rest = app.parse_commands(tokens)
    named = [(name, one) for name, one in zip(chain, apps[1:], strict=False) if not name.startswith("-")]
    command = named[-1][1] if named else app
    if command.default_command is not None:
        command.help = None  # which otherwise is its line in the list of commands
    return tuple(name for name, _ in named), command, rest


def unknown_option(app: App, tokens: Sequence[str]) -> str | None:
    """The line about the first long option that the command does not have, or None.

    It is looked for before anything is parsed, so that a wrong option is not mistaken for a missing argument.
    """
    chain, command, rest = command_of(app, tokens)
    if command.default_command is None:
        return None
    arguments = _options_of(command)
    known = {*arguments, *app.help_flags, *app.version_flags}
    for before, token, after in zip(["", *rest], rest, [*rest[1:], ""], strict=False):
        if token == "--":
            return None
        name, equals, value = token.partition("=")
        free = arguments.get(before, False)
        if token.startswith("--") and " " not in name and name not in known and not free:
            return _suggest(chain, name, value if equals else after, [one for one in arguments if one.startswith("--")])
    return None


def _options_of(command: App) -> dict[str, bool]:
    """The names of a command's options, found once in a process, and whether their values may begin with a hyphen."""
    found = _OPTIONS.get(command.default_command)
    if found is None:
        arguments = command.assemble_argument_collection()
        found = {
            name: argument.parameter.allow_leading_hyphen or False for argument in arguments for name in argument.names
        }
        _OPTIONS[command.default_command] = found
    return found


def _suggest(chain: Sequence[str], name: str, value: str, options: Sequence[str]) -> str:
    start = f"{name} is not an option of `elman {' '.join(chain)}`"
    key = _recipe_key(name) if "--set" in options else None
    if key is not None:
        shown = value if value and not value.startswith("-") else "VALUE"
        return f"{start}; did you mean --set {key}={shown}?"
    return f"{start}; {_did_you_mean(name, options)}"


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    same = [one for one in known if name in SYNONYMS.get(one, ())]
    near = same or [one for one in known if one.startswith(name)]
    near = near or difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else "see --help"


def _recipe_key(option: str) -> str | None:
    """The key of a recipe that an option names, such as training.epochs for --epochs; the highest of several."""
    from elman.config.recipe import Recipe

    wanted = option.removeprefix("--").replace("-", "_")
    found = (key for key in _keys(Recipe) if wanted in (key, key.rpartition(".")[2]))
    return min(found, key=lambda key: key.count("."), default=None)


def _keys(record: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    for name, hint in typing.get_type_hints(record).items():
        if name in record.__struct_fields__:
            yield f"{prefix}{name}"
            for one in _records(hint):
                yield from _keys(one, f"{prefix}{name}.")


def _records(hint: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    elif typing.get_origin(hint) not in (tuple, list, dict):
        for part in typing.get_args(hint):
            yield from _records(part)


def explain(app: App, error: Exception) -> str | None:
    """One line about an error of the parser, of the user, of a file, of memory or of a plug-in; None for any other."""
    match error:
        case UserError():
            return str(error)
        case CycloptsError():
            return _wrong_command(app, error)
        case OSError():
            return _wrong_file(error)
    text = " ".join(str(error).split())
    if isinstance(error, TypeError):
        return _NO_FLOAT64 if "MPS" in text and "float64" in text else None
    if (
        isinstance(error, MemoryError)
        or "OutOfMemory" in type(error).__name__
        or any(one in text for one in _NO_MEMORY)
    ):
        return (
            f"out of memory ({text or 'no more can be allocated'}); choose smaller sizes, or fewer streams and samples"
        )
    from elman.config import plugins  # loads them, and may fail

    return plugins.blame(error)


def _wrong_file(error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.filename is not None:
        cure = _CURES.get(error.errno or 0, "check the path and the rights to it")
        return f"{os.fsdecode(error.filename)}: {reason}; {cure}"
    return f"standard output or a temporary file cannot be written ({reason}); free some space, or write elsewhere"


def _wrong_command(app: App, error: CycloptsError) -> str:
    """One line about an error of the parser."""
    chain = " ".join(error.command_chain or ())
    match error:
        case UnknownCommandError():
            word, known = (error.unused_tokens or [""])[0], [name for name in error.app or app if name[0] != "-"]
            kind, hint = "an option" if word.startswith("-") else "a command", _did_you_mean(word, known)
            hint = f"commands: {', '.join(known)}" if hint == "see --help" else hint
            return f"{word} is not {kind} of `{f'elman {chain}'.strip()}`; {hint}"
        case UnknownOptionError():
            name = error.token.keyword or error.token.value
            options = [name for argument in error.argument_collection for name in argument.names]
            return _suggest(chain.split(), name.partition("=")[0], "", options)
        case UnusedCliTokensError():
            extra = (error.unused_tokens or [""])[0]
            return f"{extra!r} is one argument too many for `elman {chain}`; see --help"
        case MissingArgumentError():
            assert error.argument is not None
            name = error.keyword or _name_of(error.argument)
            problem = "needs a value" if error.keyword or error.argument.tokens else "is missing"
            return f"{name} {problem}; see `elman {chain} --help`"
        case CoercionError() | ValidationError():
            return _wrong_value(error)
    return " ".join(str(error).split())


def _wrong_value(error: CoercionError | ValidationError) -> str:
    argument = error.argument
    assert argument is not None
    token = getattr(error, "token", None) or next(iter(argument.tokens), None)
    name = (token.keyword if token else None) or _name_of(argument)
    value = token.value if token else ""
    if choices := argument.get_choices(force=True):
        near = difflib.get_close_matches(value, choices, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{name} is {value!r}; it must be {_or(choices)}{hint}"
    reason = error.exception_message if isinstance(error, ValidationError) else str(error.msg or "")
    if not reason:
        reason = "it takes no value" if argument.hint is bool else "it has another type"
    return f"{name} is {value}; {reason}"


def _name_of(argument: Argument) -> str:
    return argument.name if argument.name.startswith("-") else argument.name.upper()


def _or(choices: Iterable[str]) -> str:
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last
