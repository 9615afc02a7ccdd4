"""elman generate --interactive: a text continued by turns, the person's and the model's, in constant memory."""

import sys
from typing import TYPE_CHECKING

import msgspec

from elman.cli import texts
from elman.data.text.tokeniser import Detokeniser
from elman.data.text.utf8 import decode
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.decoding.sampling import Continuation
    from elman.tasks.text.run import TextRun

HELP = """\
a line          is read, and the model continues the text; an empty line lets it continue
:new            begin a new text
:seed N         begin the random draws again, with this seed
:temperature X  below 1 probable tokens become more probable; 0 takes the most probable one
:help           this list
::text          read :text
Ctrl-C          stop the continuation; the text so far stays
Ctrl-D          end"""


class Conversation:
    """A text that grows by turns; the state is kept between them.

    Lines come from standard input, what the model writes goes to standard output, all else to standard error.
    """

    def __init__(
        self, loaded: "TextRun", text: "Continuation", undo: Detokeniser, tokens: int, sentences: int | None
    ) -> None:
        self.loaded, self.text, self.undo, self.tokens, self.sentences = loaded, text, undo, tokens, sentences

    def hold(self, *, begun: bool) -> None:
        """Take turns until standard input ends; a text that is `begun` is continued first."""
        print("type a text to continue; :help lists the commands, Ctrl-D ends", file=sys.stderr)
        if begun:
            self._continue()
        while (line := _next_line()) is not None:
            try:
                self._take(line)
            except UserError as error:
                print(f"elman: {error}", file=sys.stderr)
        print(file=sys.stderr)

    def _take(self, line: bytes) -> None:
        """Obey a command, or read a line and continue it."""
        any_bytes = self.loaded.tokeniser.options.tokenisation == "bytes"
        text = line.decode(errors="surrogateescape") if any_bytes else decode(line, "standard input")
        text = text.removesuffix("\n").removesuffix("\r")
        if text.startswith(":") and not text.startswith("::"):
            self._obey(*text[1:].split())
            return
        text = text[1:] if text.startswith("::") else text
        size, unk = len(self.loaded.vocabulary), self.loaded.vocabulary.unk
        unread = [unk if symbol >= size and unk is not None else symbol for symbol in self.text.unread]
        reader = self.loaded.reader("standard input")
        text, self.text.first = self.loaded.begun(text)
        self.text.model, ids = self.loaded.read(text, reader)
        texts.report(reader)
        self.text.unread = [*unread, *ids]
        for word in self.loaded.tokeniser.encode(text):
            self.undo.add(word)
        self.undo.end()
        self._continue()

    def _continue(self) -> None:
        """Write a continuation, and a line break unless it ends with one; an interrupt ends it alone."""
        added = ""
        try:
            for word in self.text.draw(self.tokens, self.sentences):
                added = self.undo.add(word)
                sys.stdout.write(added)
                sys.stdout.flush()
        except KeyboardInterrupt:
            print("\nstopped; Ctrl-D ends", file=sys.stderr)
        rest = self.undo.end()
        sys.stdout.write(rest if added.endswith("\n") and not rest else f"{rest}\n")
        sys.stdout.flush()

    def _obey(self, command: str = "help", *values: str) -> None:
        match command, values:
            case "new", ():
                self.text.unread, self.text.state = [self.loaded.first], self.loaded.begin()
                self.undo = Detokeniser(self.loaded.tokeniser.options)
            case "seed", (value,) if value.isdecimal() and len(value) < 19:
                self.text.generator.manual_seed(int(value))
            case "temperature", (value,):
                self._heat(value)
            case "help", _:
                print(HELP, file=sys.stderr)
            case _:
                shown = " ".join([f":{command}", *values])
                raise UserError(f"{shown} is not a command, or its value is missing or wrong; :help lists the commands")

    def _heat(self, value: str) -> None:
        try:
            changed = msgspec.structs.replace(self.text.sampling, temperature=float(value))
        except ValueError:
            raise UserError(f":temperature is {value}; it must be a number, such as 0.8") from None
        changed.check()
        self.text.sampling = changed


def _next_line() -> bytes | None:
    """The next line of standard input; None at its end."""
    while True:
        try:
            print("> ", end="", file=sys.stderr, flush=True)
            return sys.stdin.buffer.readline() or None
        except KeyboardInterrupt:
            print("\nCtrl-D ends", file=sys.stderr)
