"""The exceptions and notices whose messages are written for users."""

import functools
import sys


class UserError(Exception):
    """A mistake of the user: bad input, an impossible recipe, a damaged file.

    The message is one line: the key or file, what was found, what is allowed and what to do. The
    command line prints it and exits with status 2.
    """


class Diverged(UserError):  # noqa: N818 - an outcome of training, not a fault
    """The loss of a training is not finite."""


@functools.cache
def notice(line: str) -> None:
    """Print a line for the user on standard error, once per process however often it is given."""
    print(f"elman: {line}", file=sys.stderr, flush=True)  # noqa: T201 - for the user, whichever function it is
