"""Runs by name: models that come with elman or were fetched, and runs on the Hub of Hugging Face."""

import re
from pathlib import Path

from elman.errors import UserError, did_you_mean, first_line, notice, optional
from elman.files import expanded

_NAME = re.compile(r"hf:/{1,2}([\w.-]+(?:/[\w.-]+)?)")
_SCHEME = re.compile(r"hf:/{1,2}(?=.)")


def fetched(path: Path | str) -> Path:
    """The folder of a run: the path itself, the model of that name, or of `hf://USER/NAME` the copy in the cache.

    `~` is the home folder, and `hf://FOLDER` a model of transformers here. A folder here takes precedence over a model
    of the same name, which is reported. Raises UserError where a model is damaged, where a name resembles a model's,
    and of the Hub where the package is missing, or there is no such run.
    """
    local = _SCHEME.sub("", str(path))
    if local != str(path):
        for place in (Path(local), Path("/", local)):
            if (place / "config.json").is_file():
                return place
    if (named := _NAME.fullmatch(str(path))) is not None:
        return _of_hub(named[1])
    if _is_path(path):
        return expanded(path)
    from elman.tasks.models import store

    return store.open_model(str(path))


def shown(path: Path | str) -> str:
    """A path in messages: of `hf://NAME`, of which a Path keeps one slash, as it was given.

    >>> shown(Path("hf://gpt2")), shown(Path("runs/demo"))
    ('hf://gpt2', 'runs/demo')
    """
    return _SCHEME.sub("hf://", str(path), count=1)


def _is_path(path: Path | str) -> bool:
    """Whether a path is one, rather than the name of a model."""
    from elman.tasks.models import registry, store

    name, here = str(path), Path(path)
    if here.exists() or not registry.NAME.fullmatch(name):
        if here.exists() and store.is_model(name):
            notice(f"{name}: the folder of this name is opened, not the model; from another folder the model is")
        return True
    if store.is_model(name):
        return False
    if near := did_you_mean(name, registry.own() | store.fetched()):
        raise UserError(f"{name} is neither a run folder nor a model{near}; `elman models list` shows the models")
    return True


def _of_hub(name: str) -> Path:
    """The copy of a run on the Hub in the cache of huggingface_hub, which is brought up to date."""
    path = f"hf://{name}"
    hub = optional("huggingface_hub", f"{path} needs the package huggingface_hub: pip install 'elman[hf]'")
    try:
        return Path(hub.snapshot_download(name))
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
