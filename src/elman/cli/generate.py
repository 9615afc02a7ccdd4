"""elman generate."""

import argparse
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from elman.cli import adapting, options, states, transduce
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.data.text.tokeniser import Tokeniser
    from elman.network.state import State
    from elman.tasks.text.run import TextRun


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "generate",
        help="write text, word by word, in constant memory, music as a MIDI file, or targets of sources",
        description="Write text, word by word, in constant memory, however long. --state goes on where --save-state"
        " left a text. A run on music writes a MIDI file, a run on pairs a target for every source.",
    )
    options.add_run(parser)
    parser.add_argument("--prompt", default="", metavar="TEXT", help="text to go on from; - reads standard input")
    parser.add_argument("--tokens", type=int, metavar="N", help="how many tokens (default: 200)")
    parser.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        metavar="T",
        help="below 1 likelier words, 0 always the likeliest (default: 1)",
    )
    parser.add_argument("--top-k", type=int, metavar="K", help="draw from the K most probable words")
    parser.add_argument(
        "--top-p", type=float, metavar="P", help="draw from the most probable words that reach P together"
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", help="seed of the draws (default: 0; with --state go on where they were left)"
    )
    parser.add_argument("--unk", action="store_true", help="allow <unk> to be drawn")
    parser.add_argument(
        "--state", "--load-state", type=Path, metavar="FILE", help="begin from a state that --save-state wrote"
    )
    parser.add_argument("--save-state", type=Path, metavar="FILE", help="write the state after the last token")
    parser.add_argument("--raw", action="store_true", help="print tokens as they are, separated by spaces")
    music = parser.add_argument_group("music", "of a run on music; --seed and --temperature hold there too")
    music.add_argument("--out", type=Path, metavar="FILE", help="the file to write: tune.mid, of pairs a text")
    music.add_argument("--steps", type=int, metavar="N", help="how many steps to draw (default: 128)")
    music.add_argument("--prompt-midi", type=Path, metavar="FILE", help="a MIDI file to go on from; it is repeated")
    music.add_argument("--tempo", type=float, metavar="Q", help="quarter notes a minute in the file (default: 120)")
    transduce.add(parser)
    transduce.add_page(parser)
    adapting.add_online(parser, "the prompt")
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw and print."""
    from elman.tasks.run import recipe_of

    recipe = recipe_of(args.folder)
    if recipe.kind == "pairs":
        return transduce.run(args)
    options.require_none(args, transduce.OPTIONS, f"a run on {recipe.kind}")
    if recipe.kind == "music":
        from elman.cli import tune

        return tune.run(args)
    options.require_none(args, ("out", "steps", "prompt_midi", "tempo"), "a run on text")
    return write_text(args)


def write_text(args: argparse.Namespace) -> int:
    """Draw words and print them."""
    from elman.cli import show
    from elman.decoding.sampling import Sampling, generate
    from elman.tasks.text.run import TextRun

    device = options.use_machine(args)
    tokens = 200 if args.tokens is None else args.tokens
    options.at_least(0, "--tokens", tokens)
    loaded = TextRun(args.folder, device)
    sampling = Sampling(
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        forbidden=() if args.unk else loaded.unspeakable,
    )
    sampling.check()
    prompt = options.read_text("-", loaded.tokeniser.options) if args.prompt == "-" else args.prompt
    adapting.require_adapt(args)
    saved = None if args.state is None else states.load(args.state, loaded)
    model, ids = loaded.read(prompt)
    stream = adapting.begin(args, loaded, saved, model) if args.adapt else None
    if stream is not None:
        stream.score(loaded.encode(prompt), ids)
        model, unread, state = stream.model, stream.unread, stream.state
    else:
        unread, state = _beginning(loaded, ids, saved)
    generator = states.draws(saved, args.seed, device)
    options.write_any_text()
    printer = None if args.json else _Printer(loaded.tokeniser, prompt, raw=args.raw)
    words: list[str] = []
    drawn = generate(model, unread, state, sampling, generator)
    for symbol, before in itertools.islice(drawn, tokens):
        unread, state = [symbol], before
        word = loaded.vocabulary.words[symbol]
        if args.json or args.save_state:
            words.append(word)
        if printer is not None:
            printer.write(word)
    if args.save_state:
        states.save(args.save_state, loaded, state, unread, stream, args.statistics_tokens, generator)
    if printer is None:
        text = loaded.tokeniser.decode(words)
        show.print_json({"prompt": prompt, "words": words, "text": text, "seed": generator.initial_seed()})
    else:
        printer.end()
    return 0


class _Printer:
    """Prints words as they come, as readable text or, where asked, as they are."""

    def __init__(self, tokeniser: "Tokeniser", prompt: str, *, raw: bool) -> None:
        import msgspec

        from elman.data.text.tokeniser import Detokeniser

        options = tokeniser.options
        self.undo = Detokeniser(msgspec.structs.replace(options, tokenisation="words", eos="line") if raw else options)
        if prompt:
            sys.stdout.write(prompt)
            for word in tokeniser.encode(prompt):
                self.undo.add(word)

    def write(self, word: str) -> None:
        sys.stdout.write(self.undo.add(word))
        sys.stdout.flush()

    def end(self) -> None:
        sys.stdout.write(self.undo.end() + "\n")


def _beginning(loaded: "TextRun", ids: list[int], saved: states.Saved | None) -> "tuple[list[int], State]":
    if saved is None:
        return [loaded.first, *ids], loaded.begin()
    from elman.network.state import numbered, rebuild

    if "rule" in saved.facts:
        raise UserError(f"{saved.path}: saved by a stream that adapts; add --adapt to go on with it")
    leaves = (leaf.to(loaded.device) for leaf in numbered(saved.tensors))
    return [*saved.facts["unread"], *ids], rebuild(loaded.begin(), leaves)
