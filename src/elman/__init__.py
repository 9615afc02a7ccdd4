"""elman: recurrent models of discrete sequences, trained, evaluated, sampled and scored.

The names below are loaded when first used, so that `import elman` does not wait for torch.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "load": "elman.tasks.text.run",
    "Run": "elman.tasks.text.run",
    "Experiment": "elman.tasks.experiment",
    "LanguageModel": "elman.network.model",
    "Vocabulary": "elman.data.text.vocabulary",
    "UserError": "elman.errors",
}

__all__ = ["Experiment", "LanguageModel", "Run", "UserError", "Vocabulary", "__version__", "load"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'elman' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)
