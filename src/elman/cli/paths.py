"""`~` at the beginning of the paths on a command line, which most shells leave as it is after `--out=`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from elman.errors import UserError
from elman.files import expanded

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import ArgumentCollection

NAMES = frozenset({"DATA", "FILE", "FILE_OR_URL", "NGRAM[=W]", "OTHER", "RULES", "SOURCE"})
"""What help calls the arguments that are strings, since they may be other things too, and yet name files."""


def expand(_: "App", commands: tuple[str, ...], arguments: "ArgumentCollection") -> None:  # noqa: ARG001 - as called
    """Put the home folder in the place of `~` in all paths, before they are checked and the command is called.

    Raises UserError where a path is empty, which would be the working folder.
    """
    for argument in arguments:
        if _is_path(argument.hint) or not NAMES.isdisjoint((argument.parameter.metavar, argument.name)):
            for token in argument.tokens:
                if not token.value and _is_path(argument.hint):
                    raise UserError(f"{token.keyword or argument.name} is empty; give a name")
            argument.tokens = [  # others begin with an address, a name, or the hyphen of standard input
                token.evolve(value=str(expanded(token.value))) if token.value.startswith("~") else token
                for token in argument.tokens
            ]


def _is_path(hint: Any) -> bool:
    return Path in (hint, *get_args(hint))
