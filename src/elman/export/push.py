"""An exported folder on the Hub of Hugging Face, or on the server that `HF_ENDPOINT` names, by huggingface_hub."""

import re
from pathlib import Path

import msgspec

from elman.errors import UserError, first_line

_NAME = re.compile(r"[\w.-]+/[\w.-]+")
NEEDS = "--push needs the package huggingface_hub: pip install 'elman[hf]'"


class Sent(msgspec.Struct, frozen=True):
    """A file of the folder and its bytes."""

    name: str
    bytes: int


class Pushed(msgspec.Struct, frozen=True):
    """What was sent, or would be: the name, whether only its owner sees it, the files, and the address of the commit.

    `commit` is empty where nothing was sent.
    """

    name: str
    private: bool
    files: list[Sent]
    commit: str


def require_name(name: str) -> str:
    """A name of the form USER/NAME; raises UserError for others, and where huggingface_hub is missing."""
    if not _NAME.fullmatch(name):
        raise UserError(f"--push {name}: write USER/NAME, as on the Hub of Hugging Face")
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise UserError(NEEDS) from None
    return name


def push(folder: Path, name: str, *, private: bool = False, dry_run: bool = False) -> Pushed:
    """Send all files of a folder in one commit to the repository USER/NAME, which is made where it is missing.

    The token is that of the environment (`HF_TOKEN`) or of `hf auth login`. With `dry_run` nothing is sent, and no
    server is asked. Raises UserError where the name is not one, the token is missing or refused, or the server cannot
    be reached.
    """
    require_name(name)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sent = [Sent(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]
    if dry_run:
        return Pushed(name, private, sent, "")
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # of the transport, which differs by version
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    disable_progress_bars()
    api = HfApi()
    try:
        api.create_repo(name, private=private, exist_ok=True)
        made = api.upload_folder(repo_id=name, folder_path=folder, commit_message="Model written by elman")
    except (HTTPError, OSError, ValueError) as error:  # of the network, the token, the name or the server
        raise UserError(f"--push {name}: {_reason(error)}; the folder {folder} is complete") from error
    return Pushed(name, private, sent, str(made.commit_url))


def _reason(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 401 or type(error).__name__ == "LocalTokenNotFoundError":
        return "the Hub does not know who is asking; set HF_TOKEN to a token that may write, or run `hf auth login`"
    if status == 403:
        return "the token may not write there; take one with the right to write, and a name of your own"
    return f"it could not be sent ({first_line(error)})"
