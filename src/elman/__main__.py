"""`elman` and `python -m elman`."""

import signal


def main() -> int:
    """Run the command line; Ctrl-C while it is being imported ends the process without a word."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from elman.cli import main as command

    if handler is not None:
        signal.signal(signal.SIGINT, handler)
    return command()


if __name__ == "__main__":
    raise SystemExit(main())
