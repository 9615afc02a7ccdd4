"""elman: recurrent sequence models, trained, evaluated, sampled and scored.

The names below are loaded when first used, so that `import elman` does not wait for torch.
"""

import functools
import importlib
from pathlib import Path
from typing import Any

_HOMES = {
    "load": "elman.tasks.interface",
    "train": "elman.tasks.interface",
    "evaluate": "elman.tasks.interface",
    "generate": "elman.tasks.interface",
    "score": "elman.tasks.interface",
    "Trained": "elman.tasks.interface",
    "Generated": "elman.tasks.interface",
    "Scored": "elman.tasks.interface",
    "Scorer": "elman.tasks.text.scorer",
    "Run": "elman.tasks.run",
    "EvaluationOptions": "elman.tasks.evaluating",
    "Sampling": "elman.decoding.sampling",
    "Experiment": "elman.tasks.experiment",
    "Recipe": "elman.config",
    "load_recipe": "elman.config",
    "fit": "elman.nn.fitting",
    "build_model": "elman.network.build",
    "LanguageModel": "elman.network.model",
    "Vocabulary": "elman.data.text.vocabulary",
    "UserError": "elman.errors",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'elman' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


@functools.cache
def _version() -> str:
    """The version by the tags of a checkout, where setuptools-scm is installed; otherwise as installed."""
    from importlib.metadata import PackageNotFoundError, version

    root = Path(__file__).parents[2]
    if (root / ".git").exists() and (root / "pyproject.toml").is_file():
        try:
            from setuptools_scm import get_version

            return str(get_version(root, fallback_version=None))
        except (ImportError, LookupError, OSError):
            pass
    try:
        return version("elman")
    except PackageNotFoundError:
        return "0+unknown"
