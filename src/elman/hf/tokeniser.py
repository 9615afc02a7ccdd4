"""The tokeniser of a run as transformers calls it: the same rules, the same numbers."""

import shutil
from pathlib import Path
from typing import Any, final

import msgspec
from transformers import PreTrainedTokenizer

from elman.config.text import TextOptions
from elman.data.text import subwords
from elman.data.text.reading import TextReader
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import EOS, UNK, Vocabulary
from elman.data.windows import start_symbol
from elman.errors import UserError

VOCABULARY = "vocabulary.tsv"


@final
class ElmanTokenizer(PreTrainedTokenizer):
    """Tokens of a text by the rules of the run's data section, before them the symbol that precedes a text (`<eos>`).

    Padding is `<eos>`, which the model never reads there.
    """

    vocab_files_names = {"vocab_file": VOCABULARY, "subwords_file": subwords.FILE}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(
        self,
        vocab_file: str,
        subwords_file: str | None = None,
        options: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        self.rules = msgspec.convert(options or {}, TextOptions)
        self.vocabulary, self.subwords_file = Vocabulary.load(Path(vocab_file)), subwords_file
        spelt = self.rules.tokenisation == "subwords"
        self.tokeniser = Tokeniser(self.rules, subwords.load(Path(str(subwords_file)).parent) if spelt else None)
        words = self.vocabulary.words
        others.setdefault("bos_token", words[start_symbol(self.vocabulary)])
        for name, word in (("unk_token", UNK), ("eos_token", EOS), ("pad_token", EOS)):
            if word in self.vocabulary.ids:
                others.setdefault(name, word)
        others.setdefault("special_tokens_pattern", "bos")
        super().__init__(options=options, **others)

    @property
    def vocab_size(self) -> int:
        """The number of symbols."""
        return len(self.vocabulary)

    def get_vocab(self) -> dict[str, int]:
        """Every symbol and its number."""
        return dict(self.vocabulary.ids)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        try:
            tokens = TextReader(self.vocabulary, self.tokeniser).one(text).read
        except UserError as error:
            raise ValueError(str(error)) from error
        ends = bool(tokens) and tokens[-1] == EOS and self.rules.eos != "exact"
        return tokens[:-1] if ends else tokens

    def _convert_token_to_id(self, token: str) -> int:
        found = self.vocabulary.ids.get(token, self.vocabulary.unk)
        if found is None:
            raise ValueError(f"{token!r} is not in the vocabulary of {len(self.vocabulary):,}, which has no {UNK}")
        return found

    def _convert_id_to_token(self, index: int) -> str:
        return self.vocabulary.words[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The text of tokens."""
        return self.tokeniser.decode(tokens)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write the vocabulary, and the model of subwords if there is one."""
        beginning = f"{filename_prefix}-" if filename_prefix else ""
        path = Path(save_directory) / f"{beginning}{VOCABULARY}"
        self.vocabulary.save(path)
        if self.tokeniser.subwords is None:
            return (str(path),)
        pieces = Path(save_directory) / f"{beginning}{subwords.FILE}"
        if Path(str(self.subwords_file)).resolve() != pieces.resolve():
            shutil.copyfile(str(self.subwords_file), pieces)
        return str(path), str(pieces)
