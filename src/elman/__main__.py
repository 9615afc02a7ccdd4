"""`python -m elman`."""

from elman.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
