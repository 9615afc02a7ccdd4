"""What an export wrote, as a record and as the README of its folder; recipes and data named without local paths."""

from pathlib import Path
from typing import Any

import msgspec
from torch import Tensor

from elman import __version__
from elman.config.text import TextData
from elman.config.toml import dump_recipe
from elman.files import json_text, write_atomic
from elman.learning import checkpoint
from elman.learning.checkpoint import MODEL
from elman.tasks.run import Run
from elman.tasks.text.run import TextRun


class File(msgspec.Struct, frozen=True):
    """A written graph.

    Attributes:
        difference: largest difference of log-probabilities from the model, in nats, over `compared` tokens.
        perplexity: of the same columns of the valid split as the model's; None where that split is missing.
    """

    name: str
    bytes: int
    sha256: str
    difference: float
    compared: int
    perplexity: float | None


class Exported(msgspec.Struct, frozen=True):
    """What was written, and the perplexity of the model on the first `tokens` of the valid split, if there is one."""

    folder: str
    files: list[File]
    perplexity: float | None
    tokens: int


def readme(run: TextRun, exported: Exported, *, sherpa: bool) -> str:
    name = exported.files[0].name
    return "\n".join(
        [
            f"# {run.recipe.title}",
            "",
            f"A recurrent language model of {len(run.vocabulary):,} symbols, exported by elman {__version__}.",
            "",
            *rows_of(exported),
            "",
            *(_SHERPA if sherpa else _PROGRAM if name.endswith(".pt2") else _STEP),
            "",
        ]
    )


def rows_of(exported: Exported) -> list[str]:
    """The table of the files and what was measured, in Markdown."""
    rows = [
        f"| `{one.name}` | {one.bytes:,} | {one.difference:.2g} |"
        f" {'' if one.perplexity is None else f'{one.perplexity:.2f}'} |"
        for one in exported.files
    ]
    measured = (
        f"The model has a perplexity of {exported.perplexity:.2f} on {exported.tokens:,} tokens of the valid split,"
        " read in several columns."
        if exported.perplexity is not None
        else "The valid split was not at hand."
    )
    return [
        "| file | bytes | largest difference from the model, nats | perplexity |",
        "|---|---|---|---|",
        *rows,
        "",
        measured,
    ]


_STEP = """A step reads one symbol of every sequence and the state, and returns the log-probabilities (nats) of the next
symbol and the new state. `config.json` names the states, `tokens.txt` the symbols; a sequence begins with the
symbol `first`, and its state with zeros or with `beginning.npz`.

```python
import json
import numpy as np
import onnxruntime

facts = json.load(open("config.json"))
session = onnxruntime.InferenceSession("model.onnx")
state = {one["input"]: np.zeros([1, *one["shape"]], one["dtype"]) for one in facts["states"]}
if facts["beginning"] != "zeros":
    state = dict(np.load(facts["beginning"]))  # arrays [1, ...], one sequence
log_probs, *after = session.run(None, {"symbols": np.array([facts["first"]]), **state})
state = dict(zip(state, after))
```""".splitlines()

_PROGRAM = """`model.pt2` is a program of torch.export. A step reads one symbol of every sequence and the tensors of the
state, and returns the log-probabilities (nats) of the next symbol and the tensors of the new state. `config.json` names
the states, `tokens.txt` the symbols; a sequence begins with the symbol `first`, and its state with zeros or with
`beginning.npz`.

```python
import json
import numpy as np
import torch

facts = json.load(open("config.json"))
step = torch.export.load("model.pt2").module()
state = [torch.zeros(1, *one["shape"], dtype=getattr(torch, one["dtype"])) for one in facts["states"]]
if facts["beginning"] != "zeros":
    state = [torch.from_numpy(array) for array in np.load(facts["beginning"]).values()]  # [1, ...], one sequence
log_probs, *state = step(torch.tensor([facts["first"]]), *state)
```""".splitlines()

_SHERPA = """The graph has the form of recurrent language models in sherpa-onnx (shallow fusion): inputs x [N, 1] and
two tensors [1, N, S] that begin as zeros, outputs log-probabilities [N, 1, V] and both tensors after the symbols.
Its metadata has `num_layers`, `hidden_size` and `sos_id`.""".splitlines()


def source_name(run: Run) -> str:
    """Where the data of a run is, without the place on this machine."""
    return Path(str(run.facts["source"])).name


def write_origin(run: Run, folder: Path) -> None:
    """Write recipe.toml and data.json of a run into a folder, with names instead of paths."""
    source, data = source_name(run), run.recipe.data
    if data.corpus is not None:
        data = data.changed(corpus=source)
    if isinstance(data, TextData) and data.grammar is not None:
        rules = Path(data.grammar.rules).name
        data = msgspec.structs.replace(data, grammar=msgspec.structs.replace(data.grammar, rules=rules))
    write_atomic(folder / "recipe.toml", dump_recipe(msgspec.structs.replace(run.recipe, data=data), places=False))
    write_atomic(folder / "data.json", json_text({**run.facts, "source": source}, indent=1) + "\n")


def load_model(run: Run) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a run's best model; the recipe among the facts has names instead of paths too."""
    tensors, facts = checkpoint.load(run.path / MODEL)
    match facts:
        case {"recipe": {"data": {"grammar": {"rules": str(rules)} as grammar}}}:
            grammar["rules"] = Path(rules).name
    return tensors, facts
