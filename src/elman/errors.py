"""What is written for users: the exceptions whose messages they read, and notices."""

import sys


class UserError(Exception):
    """A mistake of the user: bad input, an impossible recipe, a damaged file.

    The message is one line: the key or file, what was found, what is allowed and what to do. The
    command line prints it and exits with status 2.
    """


class Diverged(UserError):  # noqa: N818 - an outcome of training, not a fault
    """The loss of a training is not finite."""


_NOTICES: set[str] = set()


def notice(line: str) -> None:
    """Print a line for the user on standard error, once per process."""
    if line not in _NOTICES:
        _NOTICES.add(line)
        print(f"elman: {line}", file=sys.stderr)  # noqa: T201 - what a user has to know, whoever calls
