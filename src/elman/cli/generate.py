"""elman generate: text, drawn from a trained model token by token."""

import dataclasses
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import msgspec
from cyclopts import Parameter

from elman.cli import show, states, texts
from elman.cli.adaptation import OnlineOptions
from elman.cli.groups import Common
from elman.cli.mixing import MixtureOptions
from elman.cli.options import (
    FreeText,
    Natural,
    OutText,
    Positive,
    TextRunFolder,
    file_to_write,
    group,
    record_of,
    refuse,
)
from elman.config.inference import Sampling
from elman.data.text.tokeniser import Detokeniser, Tokeniser
from elman.data.text.utf8 import to_bytes
from elman.data.text.vocabulary import EOS
from elman.errors import counted
from elman.files import write_atomic

if TYPE_CHECKING:
    from elman.decoding.sampling import Continuation


@group("Sampling", 2, of=Sampling())
class SamplingOptions:
    """How tokens are drawn.

    Attributes:
        seed: seed of the draws (default: a fresh one, printed on standard error; with --state the draws continue where
            they were left).
        unk: allow <unk> to be drawn.
    """

    seed: Natural | None = None
    unk: bool = False


@group("Output", 1)
class OutputOptions:
    """What is written, and where.

    Attributes:
        samples: continuations, each independent of the others; number k has the seed plus k - 1.
        out: the file to write, when all is drawn (default: standard output, as it is drawn).
        raw: print tokens as they are, separated by spaces.
        interactive: continue the lines of standard input by turns; :help lists the commands, Ctrl-D ends.
    """

    samples: Positive = 1
    out: OutText = None
    raw: bool = False
    interactive: bool = False

    @property
    def file(self) -> Path | None:
        """The file to write; None is standard output, as - is."""
        return None if self.out == Path("-") else self.out

    def check(self, *, save_state: bool, adapt: bool, as_json: bool) -> None:
        """Raises UserError where the options do not fit together."""
        several = self.samples > 1
        others = {"--samples": several, "--out": self.file, "--raw": self.raw, "--adapt": adapt, "--json": as_json}
        if self.interactive:
            refuse((name for name, value in others.items() if value), "does not belong to --interactive; leave it out")
        if several and save_state:
            refuse(["--save-state"], "keeps a single continuation; leave out --samples")


def generate(
    run: TextRunFolder,
    /,
    *,
    prompt: FreeText = "",
    tokens: Natural = 200,
    sentences: Positive | None = None,
    output: OutputOptions = OutputOptions(),
    sampling: SamplingOptions = SamplingOptions(),
    state: Annotated[Path | None, Parameter(alias="--load-state", metavar="FILE")] = None,
    save_state: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    adaptation: OnlineOptions = OnlineOptions(),
    mixture: MixtureOptions = MixtureOptions(),
    reading: texts.ReadingOptions = texts.ReadingOptions(),
    common: Common = Common(),
) -> None:
    """Write text, token by token, in constant memory, however long.

    --state continues where --save-state left a text. With --adapt the model learns from the prompt.

    Args:
        prompt: text to continue; - reads standard input
        tokens: number of tokens, at most
        sentences: stop after this number of sentences; one ends at <eos> where the run has it, else with a final mark
        state: begin from a state that --save-state wrote
        save_state: write the state after the last token
    """
    from elman.cli.conversation import Conversation
    from elman.decoding.sampling import Continuation

    adaptation.check()
    output.check(save_state=save_state is not None, adapt=adaptation.adapt, as_json=common.as_json)
    chosen = record_of(Sampling(), sampling)
    own = {"--adapt": adaptation.adapt, "--state": state, "--save-state": save_state}
    mixture.refuse_with([name for name, value in own.items() if value])
    loaded = common.open_text(run)
    mixture.join(loaded)
    chosen = msgspec.structs.replace(chosen, forbidden=() if sampling.unk else loaded.unspeakable)
    if prompt == "-":
        prompt = texts.read_text("-", loaded.options)
        prompt = prompt if loaded.options.eos == "exact" else prompt.removesuffix("\n").removesuffix("\r")
    saved = None if state is None else states.load(state, loaded)
    reader = reading.reader(loaded, "--prompt")
    begun, first = loaded.begun(prompt)
    model, ids = loaded.read(begun, reader, prompt=True)
    texts.report(reader)
    stream = adaptation.stream(loaded, saved, model) if adaptation.adapt else None
    if stream is not None:
        size, unk = len(loaded.vocabulary), loaded.vocabulary.unk or 0
        stream.score([symbol if symbol < size else unk for symbol in ids], ids)
        model, unread, place = stream.model, stream.unread, stream.state
    else:
        unread, place = states.begin(loaded, ids, saved)
    generator = states.draws(None if output.samples > 1 else saved, sampling.seed, loaded.device, chosen.temperature)
    text = Continuation(
        model, unread, place, generator, chosen, loaded.vocabulary.words, loaded.tokeniser.options, first
    )
    texts.write_any_text()
    if output.interactive:
        undo = _after(loaded.tokeniser, begun, sys.stdout)
        Conversation(loaded, text, undo, tokens, sentences).hold(begun=bool(prompt))
    else:
        _write_samples(loaded.tokeniser, prompt, begun, text, output, tokens, sentences, as_json=common.as_json)
    if save_state:
        states.save(save_state, loaded, text.state, text.unread, stream, adaptation.statistics_tokens, generator)


def _write_samples(
    tokeniser: Tokeniser,
    prompt: str,
    begun: str,
    text: "Continuation",
    output: OutputOptions,
    tokens: int,
    sentences: int | None,
    *,
    as_json: bool,
) -> None:
    """Write the continuations of a text, from the seed of its generator on; `text` is then the last one."""
    first, start = text.generator.initial_seed(), dataclasses.replace(text)
    target: TextIO = io.StringIO() if output.file is not None or as_json else sys.stdout
    rows = list[dict[str, Any]]()
    for seed in range(first, first + output.samples):
        if seed > first:
            text.generator.manual_seed(seed)
            text.unread, text.state, text.first = start.unread, start.state, start.first
        if output.samples > 1:
            target.write(f"=== sample {seed - first + 1}, seed {seed} ===\n")
        undo, words = _after(tokeniser, begun, target, raw=output.raw), list[str]()
        for word in text.draw(tokens, sentences):
            target.write(undo.add(word))
            target.flush()
            if as_json:
                words.append(word)
        target.write(undo.end() + "\n")
        if not text.is_complete:
            print(f"no end of a sentence within {tokens:,} tokens; raise --tokens", file=sys.stderr)
        rows.append({"number": seed - first + 1, "seed": seed, "words": words, "text": tokeniser.decode(words)})
    if isinstance(target, io.StringIO) and output.file is not None:
        write_atomic(output.file, to_bytes(target.getvalue()))
    if as_json:
        one = {name: rows[0][name] for name in ("words", "text", "seed")}
        show.print_json({"prompt": prompt, **one, "samples": rows, "out": output.file and str(output.file)})
    elif output.file is not None:
        print(f"{output.file}: {counted(output.samples, 'sample')}")


def _after(tokeniser: Tokeniser, prompt: str, target: TextIO, *, raw: bool = False) -> Detokeniser:
    """Write the prompt, and return what makes text of the tokens that follow it, as they are drawn."""
    options = tokeniser.options
    undo = Detokeniser(msgspec.structs.replace(options, tokenisation="words", eos="line") if raw else options)
    target.write(prompt)
    for place, line in enumerate(prompt.split("\n")):
        for word in [*[EOS] * (place > 0), *tokeniser.encode(line)]:
            undo.add(word)
    undo.end()  # the beginning of a character is written already
    return undo
