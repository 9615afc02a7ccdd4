"""elman import: models of other programs as runs."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from elman.cli import show
from elman.cli.help import family
from elman.cli.options import AsJson

app = family("import", "What is written is a run folder: `elman evaluate`, `score`, `generate` and others open it.")


@app.command
def fastai(
    weights: Annotated[Path, Parameter(metavar="WEIGHTS")],
    /,
    *,
    vocabulary: Annotated[Path, Parameter(metavar="FILE")],
    out: Annotated[Path, Parameter(metavar="FOLDER")],
    tokenisation: Literal["words", "raw"] = "words",
    lowercase: bool = False,
    as_json: AsJson = False,
) -> None:
    """A language model of fastai: AWD-LSTM, as of ULMFiT.

    Nothing pickled is loaded. xxunk becomes <unk>, and xxbos, which precedes every text, <eos>. `elman train
    RUN/recipe.toml --init RUN --data TEXT` trains it on; words that the text adds begin at random.

    Args:
        weights: .safetensors, or .pth with tensors alone
        vocabulary: its words in their order: a JSON list (.json), or a word per line
        out: the run folder to write
        tokenisation: how texts are read: words, tokens of fastai between white space; or raw, ordinary text
        lowercase: fold capitals, for ordinary text
    """
    from elman.export.fastai import import_fastai

    made = import_fastai(weights, vocabulary, out, tokenisation=tokenisation, lowercase=lowercase)
    rows = [
        ["words", f"{made.words:,}"],
        ["word vectors", f"{made.width:,}"],
        ["LSTM layers", ", ".join(f"{size:,}" for size in made.sizes)],
        ["output weights", "shared with the word vectors" if made.tied else "their own"],
        ["output bias", "yes" if made.bias else "no"],
        ["parameters", f"{made.parameters:,}"],
    ]
    show.print_result(as_json, msgspec.to_builtins(made), (f"{made.folder}: from {weights}", ["", ""], rows))
