"""ARPA files: values by hand, forms of other programs, damage, and models written and read again."""

import gzip
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.evaluation.ngram.arpa import LN10, read_arpa
from elman.evaluation.ngram.arpa_writing import write_arpa
from elman.evaluation.ngram.model import train

BY_HAND = r"""
\data\
ngram 1=5
ngram 2=4
ngram 3=2

\1-grams:
-1.0	<unk>
-99	<s>	-0.5
-0.8	</s>
-0.6	a	-0.2
-0.7	b	-0.3

\2-grams:
-0.4	<s> a	-0.1
-0.3	a b	-0.25
-0.2	b </s>
-0.9	a a

\3-grams:
-0.15	<s> a b
-0.05	a b </s>

\end\
"""


@pytest.fixture
def write(tmp_path):
    def to_file(text, name="model.arpa"):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return to_file


def log10s(model, text):
    return (model.score(model.encode(text.split()))[0] / LN10).tolist()


def test_by_hand(write):
    model = read_arpa(write(BY_HAND))
    assert model.table.order == 3
    assert model.words == ("<unk>", "<s>", "</s>", "a", "b")
    # <s> a b </s> is all seen.
    assert log10s(model, "a b <eos>") == pytest.approx([-0.4, -0.15, -0.05])
    # b after <s>: back off from <s>. a after <s> b, which is no context: back off from b. </s> after b a: from a.
    assert log10s(model, "b a <eos>") == pytest.approx([-0.5 - 0.7, -0.3 - 0.6, -0.2 - 0.8])
    # a a after <s>: back off from <s> a, then a a is seen. b after a a, no context of three: a b.
    assert log10s(model, "a a b") == pytest.approx([-0.4, -0.1 - 0.9, -0.3])
    # Unknown words are <unk>, also as contexts, where it has no n-gram. a b <unk>: back off from a b and from b.
    assert log10s(model, "z a b z") == pytest.approx([-0.5 - 1.0, -0.6, -0.3, -0.25 - 0.3 - 1.0])
    # A new sentence begins after </s>.
    assert log10s(model, "b <eos> a") == pytest.approx([-1.2, -0.2, -0.4])
    assert model.score(model.encode(["a", "b", "z"]))[1].tolist() == [2, 3, 1]


@pytest.mark.parametrize("before", ["", "a comment\n"])
def test_a_byte_order_mark_is_no_part_of_the_model(write, before):
    model = read_arpa(write(f"\ufeff{before}{BY_HAND.lstrip()}"))
    assert log10s(model, "a b") == pytest.approx([-0.4, -0.15])


def changed(before, after):
    assert before in BY_HAND
    return BY_HAND.replace(before, after)


@pytest.mark.parametrize(
    "text",
    [
        changed("\n", "\r\n"),
        changed("\t", " "),
        changed("\t", "  \t "),
        changed("\n\\", "\n\n\n\\"),
        changed("-0.4\t", "\n\n-0.4\t"),
        "This model was made\nby hand, as a preamble shows.\n" + BY_HAND,
        changed("ngram 1=5", "ngram 1 = 5"),
        changed("<unk>", "<UNK>"),
        changed("-0.9\ta a", "-0.9\ta a\t0"),
        changed("a b </s>", "a b </s>\t0"),
        changed("-99\t", "0\t"),
        changed("-99\t", "-inf\t"),
        changed("-0.8\t</s>\n", "").replace("-0.6\ta\t-0.2", "-0.6\ta\t-0.2\n-0.8\t</s>"),
        BY_HAND + "\nwhatever follows\n",
    ],
)
def test_forms_that_mean_the_same(write, text):
    wanted, model = read_arpa(write(BY_HAND)), read_arpa(write(text, "other.arpa"))
    for line in ("a b <eos>", "b a <eos>", "a a b z", "z <eos> a b"):
        assert log10s(model, line) == pytest.approx(log10s(wanted, line))
    assert model.table.log_prob(np.array([model.ids["<s>"]])) == -np.inf


def test_compressed_files(write):
    model = read_arpa(write(gzip.compress(BY_HAND.encode()), "model.whatever"))
    assert log10s(model, "a b <eos>") == pytest.approx([-0.4, -0.15, -0.05])


def test_contexts_that_pruning_left_out_are_added(write, capsys):
    # a a b a has the contexts a a b and, in it, a a, which are no n-grams.
    text = changed("ngram 2=4", "ngram 2=3").replace("-0.9\ta a\n", "").replace("ngram 3=2", "ngram 3=2\nngram 4=1")
    model = read_arpa(write(text.replace("\\end\\", "\\4-grams:\n-0.01\ta a b a\n\n\\end\\")))
    assert "2 contexts that pruning had left out are added" in capsys.readouterr().err
    # a a: back off from a. b after a a: a b. a after a a b: seen. b after a b a: from a.
    assert log10s(model, "a a b a b")[1:] == pytest.approx([-0.1 - 0.2 - 0.6, -0.3, -0.01, -0.3])
    # Nothing else has changed: a after b a is backed off from a, and a after a b from a b and b.
    assert log10s(model, "b a a")[2] == pytest.approx(-0.2 - 0.6)
    assert log10s(model, "a b a")[2] == pytest.approx(-0.25 - 0.3 - 0.6)


def test_a_suffix_that_pruning_left_out(write):
    text = changed("ngram 2=4", "ngram 2=3").replace("-0.2\tb </s>\n", "")
    assert log10s(read_arpa(write(text)), "a b <eos>") == pytest.approx([-0.4, -0.15, -0.05])


def test_empty_sections(write):
    text = changed("ngram 3=2", "ngram 3=0").replace("-0.15\t<s> a b\n-0.05\ta b </s>\n", "")
    model = read_arpa(write(text))
    assert log10s(model, "a b <eos>") == pytest.approx([-0.4, -0.1 - 0.3, -0.25 - 0.2])


def test_words_of_any_bytes(write):
    text = (
        BY_HAND.encode()
        .replace(b"\ta\t", b"\t\xff\xe9\t")
        .replace(b" a", b" \xff\xe9")
        .replace(b"\ta ", b"\t\xff\xe9 ")
    )
    model = read_arpa(write(text))
    assert log10s(model, "\udcff\udce9 b <eos>") == pytest.approx([-0.4, -0.15, -0.05])


@pytest.mark.parametrize(
    ("before", "after", "line", "what"),
    [
        ("\\data\\", "data", None, "no line is"),
        ("ngram 2=4", "ngram 2=5", 14, "4 2-grams begin here, but the header announces 5"),
        ("ngram 2=4", "ngram 2=3", 14, "the header announces 3"),
        ("ngram 2=4", "ngram 3=4", 3, "expected ngram 2=COUNT"),
        ("ngram 2=4", "ngrams", 3, "expected ngram 2=COUNT, found 'ngrams'"),
        ("ngram 1=5", "ngram 1=0", 6, "no words"),
        ("ngram 1=5", f"ngram 1={'5' * 5000}", 2, "expected ngram 1=COUNT, found 'ngram 1=555"),
        ("ngram 2=4", f"ngram {'2' * 5000}=4", 3, "expected ngram 2=COUNT, found 'ngram 222"),
        ("-0.3\ta b", "-0.3\ta c", 15, "the word 'c' is not among the 1-grams"),
        ("-0.3\ta b", "nan\ta b", 15, "'nan' cannot be the logarithm of a probability"),
        ("-0.3\ta b", "inf\ta b", 15, "'inf' cannot be the logarithm of a probability"),
        ("-0.3\ta b", "0.5\ta b", 15, "'0.5' cannot be the logarithm of a probability"),
        ("-0.3\ta b", "x\ta b", 15, "expected the logarithm of a probability, found 'x'"),
        ("a b\t-0.25", "a b\tnan", 15, "'nan' cannot be a back-off weight"),
        ("a b\t-0.25", "a b\ty", 15, "expected a back-off weight, found 'y'"),
        ("-0.3\ta b\t-0.25", "-0.3\ta", 15, "expected a logarithm, 2 words and perhaps a back-off weight"),
        ("-0.3\ta b\t-0.25", "-0.3\ta b a b -1", 15, "expected a logarithm, 2 words"),
        ("-0.9\ta a", "-0.9\ta b", 17, "the n-gram of line 15 appears again"),
        ("-0.7\tb", "-0.7\ta", 11, "the word 'a' appears twice"),
        ("\\2-grams:", "\\3-grams:", 13, "expected \\2-grams:"),
        ("\\2-grams:", f"\\{'2' * 5000}-grams:", 13, "expected \\2-grams:"),
        ("\\end\\", "", None, "incomplete"),
    ],
)
def test_damage_is_named_with_its_line(write, before, after, line, what):
    file = write(changed(before, after).lstrip("\n"))
    with pytest.raises(UserError) as error:
        read_arpa(file)
    message = str(error.value)
    assert what in message
    assert message.startswith(f"{file}:" if line is None else f"{file}:{line}:"), message


def test_a_file_may_end_anywhere(write):
    whole = BY_HAND.encode().rstrip()
    for end in range(len(whole)):
        with pytest.raises(UserError, match=r"model\.arpa"):
            read_arpa(write(whole[:end]))
    zipped = gzip.compress(BY_HAND.encode())
    for end in range(20, len(zipped), 20):
        with pytest.raises(UserError, match="damaged or incomplete"):
            read_arpa(write(zipped[:end]))


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"none\.arpa: cannot be read"):
        read_arpa(tmp_path / "none.arpa")


def test_without_marks_of_sentences(write, capsys):
    model = read_arpa(
        write("\\data\\\nngram 1=2\nngram 2=1\n\\1-grams:\n-0.3 a -0.1\n-0.4 b\n\\2-grams:\n-0.2 a b\n\\end\\")
    )
    assert "contexts run across the ends of sentences" in capsys.readouterr().err
    assert log10s(model, "a b a") == pytest.approx([-0.3, -0.2, -0.3])
    assert log10s(model, "a <eos> b") == pytest.approx([-0.3, -np.inf, -0.4])


@pytest.mark.parametrize("stream", [False, True])
def test_a_file_has_the_n_grams_that_it_announces_and_both_marks_of_sentences(tmp_path, stream):
    """A model of a running stream has neither mark; those are written with a probability of 0."""
    words = ["a", "b", "<eos>", "b", "c", "a", "<eos>"]
    vocabulary = Vocabulary.from_counts(Counter(words))
    write_arpa(train(vocabulary.encode(words), vocabulary, 3, stream=stream), tmp_path / "m.arpa")
    head, *sections = (tmp_path / "m.arpa").read_text().removesuffix("\n\\end\\\n").split("-grams:\n")
    announced = [int(line.split("=")[1]) for line in head.splitlines() if "=" in line]
    lines = [section.rsplit("\n\\", 1)[0].splitlines() for section in sections]
    assert [len([line for line in each if line]) for each in lines] == announced
    unigrams = {line.split("\t")[1]: float(line.split("\t")[0]) for line in lines[0] if line}
    assert unigrams["<s>"] == -99
    assert (unigrams["</s>"] == -99) == ("<eos>" in unigrams) == stream
    assert {"a", "b", "c"} < {*unigrams}


def gzip_free(file):
    return (gzip.open if file.suffix == ".gz" else open)(file, "rb").read()


texts = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=10)


@pytest.mark.slow
@given(texts, st.integers(1, 4), st.booleans(), st.sampled_from(["m.arpa", "m.arpa.gz"]))
def test_what_is_written_is_read_again(tmp_path_factory, sentences, order, stream, name):
    words = [word for sentence in sentences for word in (*sentence, "<eos>")]
    vocabulary = Vocabulary.from_counts(Counter([*"abcd", *words]))
    model = train(vocabulary.encode(words), vocabulary, order, stream=stream)
    file = tmp_path_factory.mktemp("arpa") / name
    write_arpa(model, file)
    again = read_arpa(file)
    assert (again.table.markers is None) == stream
    draw = np.random.default_rng(0)
    for text in (words, draw.choice([*"abcd", "<eos>", "z"], 40).tolist()):
        if stream:
            text = [word for word in text if word != "z"]
        wanted, found = model.score(model.encode(text)), again.score(again.encode(text))
        np.testing.assert_allclose(found[0], wanted[0], atol=1e-5)
        np.testing.assert_array_equal(found[1], wanted[1])
    second = file.with_name(f"second-{name}")
    write_arpa(again, second)
    assert stream or gzip_free(second) == gzip_free(file)


def test_white_space_within_words(tmp_path):
    r"""Models of characters have a space as a word, which a file spells \u0020."""
    vocabulary = Vocabulary.from_counts(Counter("a b\u3000a b a"), add_eos=True)
    tokens = vocabulary.encode([*"a b\u3000a b a", "<eos>"])
    model = train(tokens, vocabulary, 3)
    write_arpa(model, tmp_path / "m.arpa")
    again = read_arpa(tmp_path / "m.arpa")
    assert r"\u0020" in again.ids
    text = [*"b \u3000a", "<eos>"]
    np.testing.assert_allclose(again.score(again.encode(text))[0], model.score(model.encode(text))[0], atol=1e-5)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    from elman.evaluation.ngram import arpa_writing

    file = tmp_path / "m.arpa"
    file.write_text("old")
    model = train(np.array([0, 1]), Vocabulary(("a", "<eos>"), (1, 1)), 2)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(arpa_writing, "_lines", fail)
    with pytest.raises(UserError, match="the disk is full"):
        write_arpa(model, file)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["m.arpa"]


BLANKS = r"""
\data\
ngram 1=6
ngram 2=4

\1-grams:
-1.0	<unk>
-99	<s>	-0.3
-0.8	</s>
-0.9	10{0}000	-0.2
-0.6	francs	-0.1
-0.9	pour	-0.1

\2-grams:
-0.3	<s> 10{0}000
-0.1	10{0}000 francs
-0.2	francs </s>
-0.5	pour 10{0}000

\end\
"""


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2028", "\u0085", "\u2009", "\x1c", "\v", "\f"])
def test_only_spaces_and_tabs_separate_fields(write, blank):
    """The sums are those of KenLM's query; vertical tabs and form feeds are its blanks in texts, not in models."""
    model = read_arpa(write(BLANKS.format(blank)))
    word = f"10{blank}000"
    for line, wanted in ((f"{word} francs", [-0.3, -0.1, -0.2]), (f"pour {word} francs", [-1.2, -0.5, -0.1, -0.2])):
        words = line.split(" ")
        if blank not in "\v\f\x1c":
            assert model.split(line) == words
        found = model.score(model.encode([*words, "<eos>"]))[0] / LN10
        assert found.tolist() == pytest.approx(wanted)


def test_the_longest_section_may_be_missing_where_nothing_is_announced(write, capsys):
    text = changed("ngram 3=2", "ngram 3=0").replace("\\3-grams:\n-0.15\t<s> a b\n-0.05\ta b </s>\n", "")
    model = read_arpa(write(text))
    assert model.table.order == 2
    assert log10s(model, "a b <eos>") == pytest.approx([-0.4, -0.3, -0.2])
    assert "the order is 2" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"expected \\3-grams:"):
        read_arpa(write(text.replace("ngram 3=0", "ngram 3=1")))
