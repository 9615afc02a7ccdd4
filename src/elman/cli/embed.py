"""elman embed and elman analyze neighbours: hidden states of a text, word vectors and those near each other."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from cyclopts import Parameter

from elman.analysis.state_files import Columns
from elman.cli import show, streaming, texts
from elman.cli.groups import Common
from elman.cli.options import Positive, TextFile, TextRunFolder, file_to_write
from elman.data.text.tokeniser import fold
from elman.errors import UserError
from elman.files import replacing, write_atomic

if TYPE_CHECKING:
    from elman.data.text.reading import TextReader
    from elman.tasks.text.model import Foreign
    from elman.tasks.text.run import TextRun


def embed(
    run: TextRunFolder,
    file: TextFile | None = None,
    /,
    *,
    out: Annotated[Path, Parameter(metavar="FILE", validator=file_to_write)],
    layers: str | None = None,
    document: bool = False,
    vectors: Literal["input", "output"] | None = None,
    reading: texts.ReadingOptions = texts.ReadingOptions(),
    shards: streaming.ShardOptions = streaming.ShardOptions(),
    common: Common = Common(),
) -> None:
    """Hidden states of every token of a text, or word vectors.

    Writes the output of each layer after each token of a text as a .npz or .safetensors file; or, with --vectors, the
    vectors of the vocabulary in the text format of word2vec. Memory does not grow with the text, which may be
    compressed (.gz, .zst).

    Args:
        file: a UTF-8 text; - is standard input
        out: the file to write: .npz or .safetensors; with --vectors a text
        layers: top, all, or numbers such as 0,2; 0 is the input vectors (default: top)
        document: the sentences are one text: carry the state
        vectors: word vectors instead of states
    """
    from elman.analysis.embedding import word2vec_text, word_vectors

    if vectors is not None:
        if file is not None or layers is not None or document or reading.as_is or shards.shard:
            raise UserError(
                "--vectors writes the vectors of the vocabulary; leave FILE, --layers, --document, --as-is and --shard"
                " out"
            )
        loaded = common.open_model(run)
        found = word_vectors(loaded, vectors)
        write_atomic(out, word2vec_text(loaded.vocabulary.words, found))
        facts = {"file": str(out), "vectors": len(found), "size": found.shape[1]}
        line = f"{out}: {len(found):,} vectors of {found.shape[1]}"
    elif file is None:
        raise UserError("FILE is missing; give a text (- is standard input), or --vectors input for word vectors")
    elif out.suffix not in (".npz", ".safetensors"):
        raise UserError(f"--out is {out}; its name must end in .npz or .safetensors")
    else:
        if document and shards.place is not None:
            raise UserError("--document is for whole texts; leave it out, or --shard")
        loaded = common.open_model(run)
        numbers = _layers(layers or "top", loaded)
        reader = reading.reader(loaded, texts.shown_name(file))
        fresh = reading.reader(loaded, texts.shown_name(file))
        tokens, sentences = _write_states(loaded, file, numbers, reader, fresh, out, shards, document=document)
        texts.report(reader)
        facts = {"file": str(out), "tokens": tokens, "sentences": sentences, "layers": numbers}
        line = f"{out}: {tokens:,} tokens, layers {', '.join(map(str, numbers))}"
    if common.as_json:
        show.print_json(facts)
    else:
        print(line, file=sys.stderr)


def _layers(text: str, loaded: "TextRun | Foreign") -> list[int]:
    from elman.analysis.embedding import num_layers

    count = num_layers(loaded)
    if text in ("top", "all"):
        return [count - 1] if text == "top" else list(range(count))
    numbers = text.split(",")
    if not all(part.isdecimal() and int(part) < count for part in numbers):
        raise UserError(f"--layers is {text!r}; this model has the layers 0 to {count - 1}: give top, all or numbers")
    return sorted({int(part) for part in numbers})


def _write_states(
    loaded: "TextRun | Foreign",
    file: str,
    layers: list[int],
    reader: "TextReader",
    fresh: "TextReader",
    out: Path,
    shards: streaming.ShardOptions,
    *,
    document: bool,
) -> tuple[int, int]:
    """Write the states sentence by sentence; the numbers of tokens and sentences."""
    from elman.analysis.embedding import states_of
    from elman.evaluation.scoring import Sentences
    from elman.tasks.text.model import Foreign

    done, names = 0, [f"layer{layer}" for layer in layers]
    nothing = loaded.as_read([fresh.one("")])
    if not isinstance(loaded, Foreign):
        nothing = Sentences(loaded.model, [(fresh.one(""), np.array([loaded.first]))])
    with replacing(out) as temporary, streaming.reading("reading", out) as advance:
        text = texts.Text(file, loaded.options, advance)
        part = shards.part(text, loaded, fresh)
        columns = Columns(temporary.parent)
        try:
            _, _, shapes = next(states_of(loaded, nothing, layers))
            empty = np.empty(0, dtype=np.int32)
            columns.add([], {"ids": empty, "sentence": empty, **{n: a[:0] for n, a in zip(names, shapes, strict=True)}})
            read = loaded.as_read(streaming.sentences(text, part, reader))
            for tokens, ids, states in states_of(loaded, read, layers, document=document):
                numbers = np.full(len(ids), part.first + done, dtype=np.int32)
                found = dict(zip(names, states, strict=True))
                columns.add(tokens, {"ids": ids.astype(np.int32), "sentence": numbers, **found})
                done += 1
            (columns.write_npz if out.suffix == ".npz" else columns.write_safetensors)(temporary)
        finally:
            columns.close()
        return columns.rows, done


def neighbours(
    run: TextRunFolder,
    words: tuple[str, ...],
    /,
    *,
    k: Annotated[Positive, Parameter(name="-k")] = 5,
    before_highway: bool = False,
    common: Common = Common(),
) -> None:
    """The words nearest to a string, by the cosine of their vectors.

    The words of the vocabulary whose input vectors are nearest to the vector of a string. Where the model reads
    spelling any string has a vector; otherwise it must be in the vocabulary. Prints a table, no page.

    Args:
        words: strings, such as looooook
        k: neighbours per string
        before_highway: compare the output of the filters, below the highway layers
    """
    from elman.analysis.embedding import neighbourhoods

    loaded = common.open_text(run)
    asked = fold(list(words)) if loaded.options.folds_tokens else list(words)
    found = neighbourhoods(loaded.model, loaded.vocabulary, asked, k, highway=not before_highway)
    rows = [
        {"word": word, "known": known, "neighbours": [near._asdict() for near in nearest]}
        for word, known, nearest in found
    ]
    facts = {"run": str(run), "before_highway": before_highway, "words": rows}
    where = "below the highway" if before_highway else "by their vectors"
    cells = [
        [f"{word}{'' if known else ' (unknown)'}", *(f"{near.word} {near.cosine:.2f}" for near in nearest)]
        for word, known, nearest in found
    ]
    most = max(map(len, cells))  # a word of the vocabulary is no neighbour of its own
    cells = [row + [""] * (most - len(row)) for row in cells]
    table = (f"{run}: nearest words, {where}", ["", *map(str, range(1, most))], cells)
    show.print_result(common.as_json, facts, table)
