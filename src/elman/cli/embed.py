"""elman embed."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elman.cli import options, show
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.tasks.text.run import TextRun


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "embed",
        help="hidden states of every token of a text, or the vectors of the words",
        description="Writes what each layer puts out after each token of a text, as a .npz or .safetensors file; or,"
        " with --vectors, the vectors of the vocabulary in the text form of word2vec.",
    )
    options.add_run(parser)
    parser.add_argument("file", metavar="FILE", nargs="?", help="a UTF-8 text; - is standard input")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", required=True, help="what to write: .npz or .safetensors; text of vectors"
    )
    parser.add_argument(
        "--layers", metavar="L", help="top (default), all, or numbers such as 0,2; 0 is the vectors that are read"
    )
    parser.add_argument("--document", action="store_true", help="the sentences are one text: carry the state")
    parser.add_argument("--vectors", choices=["input", "output"], help="the vectors of words instead of states")
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write states or vectors."""
    from elman.analysis.embedding import word2vec_text, word_vectors
    from elman.files import write_atomic
    from elman.tasks.text.run import TextRun

    _require(args)
    device = options.use_machine(args)
    loaded = TextRun(args.folder, device)
    if args.vectors is not None:
        vectors = word_vectors(loaded, args.vectors)
        write_atomic(args.out, word2vec_text(loaded.vocabulary.words, vectors))
        if args.json:
            show.print_json({"file": str(args.out), "vectors": len(vectors), "size": vectors.shape[1]})
        else:
            print(f"{args.out}: {len(vectors):,} vectors of {vectors.shape[1]}", file=sys.stderr)
        return 0
    layers = _layers(args.layers or "top", loaded)
    _write_states(args, loaded, layers)
    return 0


def _require(args: argparse.Namespace) -> None:
    if args.out.is_dir():
        raise UserError(f"--out: {args.out} is a folder; give the name of a file")
    if args.vectors is not None:
        if args.file is not None or args.layers is not None or args.document:
            raise UserError("--vectors writes the vectors of the vocabulary; leave FILE, --layers and --document out")
    elif args.file is None:
        raise UserError("no text; give FILE (- is standard input), or --vectors input for the vectors of words")
    elif args.out.suffix not in (".npz", ".safetensors"):
        raise UserError(f"--out is {args.out}; its name must end in .npz or .safetensors")


def _layers(text: str, loaded: "TextRun") -> list[int]:
    from elman.analysis.embedding import num_layers

    count = num_layers(loaded)
    if text in ("top", "all"):
        return [count - 1] if text == "top" else list(range(count))
    numbers = text.split(",")
    if not all(part.isdecimal() and int(part) < count for part in numbers):
        raise UserError(f"--layers is {text!r}; this model has the layers 0 to {count - 1}: give top, all or numbers")
    return sorted({int(part) for part in numbers})


def _write_states(args: argparse.Namespace, loaded: "TextRun", layers: list[int]) -> None:
    import json

    import numpy as np
    from safetensors.numpy import save_file

    from elman.analysis.embedding import hidden_states
    from elman.files import replacing

    lines = options.read_lines(args.file, loaded.tokeniser.options)
    read = list(hidden_states(loaded, lines, layers, document=args.document))
    tokens = [token for words, _, _ in read for token in words]
    arrays: dict[str, Any] = {
        "ids": np.concatenate([ids for _, ids, _ in read]).astype(np.int32),
        "sentence": np.repeat(np.arange(1, len(read) + 1, dtype=np.int32), [len(ids) for _, ids, _ in read]),
    }
    for index, layer in enumerate(layers):
        arrays[f"layer{layer}"] = np.concatenate([states[index] for _, _, states in read])
    with replacing(args.out) as temporary:
        if args.out.suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez(file, tokens=np.array(tokens), **arrays)
        else:
            save_file(arrays, temporary, metadata={"tokens": json.dumps(tokens, ensure_ascii=False)})
    if args.json:
        show.print_json({"file": str(args.out), "tokens": len(tokens), "sentences": len(read), "layers": layers})
    else:
        print(f"{args.out}: {len(tokens):,} tokens, layers {', '.join(map(str, layers))}", file=sys.stderr)
