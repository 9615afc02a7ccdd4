"""Runs that are kept on the Hub of Hugging Face, named `hf://USER/NAME`, as folders on this machine."""

import re
from pathlib import Path

from elman.errors import UserError, first_line

_NAME = re.compile(r"hf:/{1,2}([\w.-]+/[\w.-]+)")


def fetched(path: Path | str) -> Path:
    """The folder itself, or of `hf://USER/NAME` the copy in the cache of huggingface_hub, which is brought up to date.

    Raises UserError where the package is missing, or there is no such run.
    """
    named = _NAME.fullmatch(str(path))
    if named is None:
        return Path(path)
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UserError(f"{path} needs the package huggingface_hub: pip install 'elman[hf]'") from None
    try:
        return Path(snapshot_download(named[1]))
    except (OSError, ValueError) as error:  # of the network, the name, or the Hub
        raise UserError(f"{path}: it cannot be fetched from the Hub ({first_line(error)})") from error


def named(path: Path | str) -> Path | str:
    """`USER/NAME`, where no such folder and no folder USER is here, as `hf://USER/NAME`; anything else as it is.

    >>> named("runs"), named("./someone/model")
    ('runs', './someone/model')
    """
    known = isinstance(path, Path) or not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", path)
    if known or Path(str(path)).exists() or Path(str(path)).parent.exists():
        return path
    return f"hf://{path}"
