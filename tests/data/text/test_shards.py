"""Parts of a text for several processes: together they have its sentences, wherever the text is divided."""

from collections import Counter
from itertools import islice

from elman.config.text import TextOptions
from elman.data.text.files import Files
from elman.data.text.reading import TextReader
from elman.data.text.shards import shard_of
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import Vocabulary
from support.pairwise import every_value

VOCABULARY = Vocabulary.from_counts(Counter({"a": 3, "b": 2, "<eos>": 2}), add_unk=True)


@every_value(eos=["line", "paragraph", "none"], blank=["", " ", "\u3000", "\u2028", "《あ》"])
def test_lines_that_are_blank_as_they_are_read_belong_to_what_precedes_them(tmp_path, blank, eos):
    """White space of other scripts, and lines of which nothing is left without ruby."""
    options = TextOptions(tokenisation="raw", eos=eos, ruby="remove")
    path = tmp_path / "text.txt"
    path.write_text(f"a b\n{blank}\n{blank}\nb\n" * 5, encoding="utf-8")
    tokeniser = Tokeniser(options)

    def sentences(lines, number=1):
        found = TextReader(VOCABULARY, tokeniser).sentences(lines, number)
        return [(sentence.read, sentence.line) for sentence in found]

    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    whole = sentences(f"{line}\n" for line in lines)
    for parts in range(2, 12):
        found = []
        for number in range(1, parts + 1):
            part = shard_of(Files.of(path), options, number, parts, 2, lambda lines: len(sentences(lines)))
            rest = (f"{line}\n" for line in path.read_bytes()[part.start :].decode().removesuffix("\n").split("\n"))
            stop = None if part.sentences is None else part.skip + part.sentences
            found += islice(sentences(rest, part.line), part.skip, stop)
        assert found == whole


def test_parts_are_about_equal(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b\n" * 100)
    parts = [
        shard_of(Files.of(path), TextOptions(), number, 4, 5, lambda lines: len([*lines])) for number in range(1, 5)
    ]
    assert [part.first for part in parts] == [1, 26, 51, 76]
    assert [part.sentences for part in parts] == [25, 25, 25, None]
