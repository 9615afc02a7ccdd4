import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from elman.config.text import SubwordOptions, TextOptions
from elman.data.text.passages import Passage, has_words, passages, unseparated
from elman.data.text.reading import TextReader
from elman.data.text.subwords import train
from elman.data.text.tokeniser import Tokeniser, detokenise, split_raw
from elman.data.text.utf8 import Line, read_lines
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.errors import UserError
from support.pairwise import every_value

WORDS = TextOptions()
RAW = TextOptions(tokenisation="raw")
LOWER = TextOptions(tokenisation="raw", lowercase=True)


def of_file(path: Path, options: TextOptions) -> Iterator[Passage]:
    return passages(read_lines(path, options=options), options)


def tokens(text: str, options: TextOptions) -> list[str]:
    lines = (Line(line, True) for line in text.splitlines(keepends=True))
    return [word for passage in passages(lines, options) for word in passage.words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Madam;--you, sir!", ["Madam", ";", "--", "you", ",", "sir", "!"]),
        ("o'er 'tis th' world's", ["o'er", "'tis", "th'", "world's"]),
        ("'Twas 'brave' sport", ["'Twas", "'", "brave", "'", "sport"]),
        ("a well-beloved - thing", ["a", "well-beloved", "-", "thing"]),
        ("at 12:30 for 1,000.50 marks.", ["at", "12:30", "for", "1,000.50", "marks", "."]),
        ("wait ... now -- go", ["wait", "...", "now", "--", "go"]),
        ("(the <unk> [of it])", ["(", "the", "<unk>", "[", "of", "it", "]", ")"]),
        ("na\u00efve cafe\u0301 \u65e5\u672c", ["na\u00efve", "cafe\u0301", "\u65e5\u672c"]),
        ("__debug__ x=1", ["__debug__", "x", "=", "1"]),
    ],
)
def test_raw_text_is_split_into_words_and_punctuation(text, expected):
    assert split_raw(text) == expected


def test_eos_by_line():
    assert tokens("a b\n\n\nc\n", WORDS) == ["a", "b", EOS, EOS, EOS, "c", EOS]
    assert tokens("\n\na b\n\n\nc\n", RAW) == ["a", "b", EOS, EOS, "c", EOS]


def test_eos_by_paragraph():
    options = TextOptions(eos="paragraph")
    assert tokens("\na b\nc\n\n\nd\ne\n", options) == ["a", "b", "c", EOS, "d", "e", EOS]


def test_no_eos():
    assert tokens("a b\n\nc\n", TextOptions(eos="none")) == ["a", "b", "c"]


def test_characters_are_tokens_and_lines_end():
    options = TextOptions(tokenisation="characters")
    assert tokens("a b\nc", options) == ["a", " ", "b", EOS, "c", EOS]
    assert tokens("a b\nc", TextOptions(tokenisation="characters", eos="none")) == list("a b c")


def test_lowercase_folds_every_word():
    assert tokens("The CAT\n", LOWER) == ["the", "cat", EOS]


@pytest.mark.parametrize(
    ("text", "options", "count"),
    [
        (" a  bb \n", WORDS, 5),
        ("\n", WORDS, 1),
        ("Yes, I.\nNo\n", RAW, 11),
        ("ab\ncd\n\ne\n", TextOptions(eos="paragraph"), 8),
        ("ab c\n", TextOptions(tokenisation="characters"), 5),
    ],
)
def test_characters_of_a_passage_are_counted_as_in_the_text(text, options, count):
    lines = (Line(line, True) for line in text.splitlines(keepends=True))
    assert sum(passage.characters for passage in passages(lines, options)) == count


def test_crlf_mark_and_missing_last_break(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfa b\r\nc ")
    assert [passage.words for passage in of_file(path, WORDS)] == [["a", "b", EOS], ["c", EOS]]
    characters = TextOptions(tokenisation="characters")
    assert [passage.words for passage in of_file(path, characters)] == [["a", " ", "b", EOS], ["c", " ", EOS]]


@every_value(end=["", " ", "\n", " \n"], length=[(1 << 16) - 2, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 5 << 15])
def test_very_long_line(tmp_path, length, end):
    path = tmp_path / "long.txt"
    text = ("word " * (length // 5 + 1))[: length - len(end)].replace(" w ", " v ") + end
    path.write_text(text)
    words = [word for passage in of_file(path, WORDS) for word in passage.words]
    assert words == [*text.split(), EOS]
    assert "".join(line.text for line in read_lines(path)) == text
    options = TextOptions(tokenisation="characters", eos="none")
    found = [word for passage in of_file(path, options) for word in passage.words]
    assert "".join(found) == text.replace("\n", " ")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_very_long_line_has_the_subwords_of_one_in_one_part(tmp_path, kind):
    pytest.importorskip("sentencepiece", reason="subwords need elman[subwords]")
    options = TextOptions(tokenisation="subwords", eos="exact", subwords=SubwordOptions(kind=kind, size=300))
    text = "the cat sat  and the naïve cats ran. " * 6000
    model = train(["the cat sat  and the naïve cats ran"] * 9, options.subwords)
    whole = [*model.encode(text), EOS]
    (tmp_path / "long.txt").write_text(f"{text}\n", encoding="utf-8")
    lines = list(read_lines(tmp_path / "long.txt", options=options))
    assert len(lines) > 2
    assert [word for passage in passages(lines, options, model) for word in passage.words] == whole
    reader = TextReader(Vocabulary.from_counts(Counter(whole)), Tokeniser(options, model))
    (sentence,) = reader.sentences([f"{text}\n"])
    assert sentence.read == whole


def test_blanks_in_a_very_long_line_end_no_paragraph(tmp_path):
    (tmp_path / "long.txt").write_text("word " * 20_000 + "\t " * 70_000 + "\nend\n", encoding="utf-8")
    found = list(of_file(tmp_path / "long.txt", TextOptions(eos="paragraph")))
    assert [word for passage in found for word in passage.words] == [*["word"] * 20_000, "end", EOS]


@pytest.mark.slow
def test_memory_does_not_grow(tmp_path):
    path, peaks = tmp_path / "long.txt", []
    for times in (1, 3):
        path.write_text("some words of a text that goes on and on \n" * 20_000 * times + "and on " * 120_000 * times)
        tracemalloc.start()
        for _ in of_file(path, TextOptions(eos="paragraph")):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert path.stat().st_size > 4_900_000
    assert peaks[1] < 1.1 * peaks[0]


def message(path, options=WORDS) -> str:
    with pytest.raises(UserError) as error:
        list(of_file(path, options))
    return str(error.value)


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("")
    assert message(path) == f"{path}: the file is empty; give a text of at least two different words"


def test_not_utf8(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"first line\nsecond caf\xe9 line\n")
    assert message(path).startswith(f"{path}: not UTF-8 at byte 21 (0xe9); it looks like ")


def test_a_folder_in_place_of_a_text_is_refused(tmp_path):
    assert message(tmp_path) == f"{tmp_path}: cannot be read (Is a directory); give a text file"


@pytest.mark.parametrize(
    "text",
    [
        "Yes, sir; (he said) \"come in!\" and went.\nOff--to the king's 'tis.\n\nA line of $5.50, or 3%.\n",
        "To be, or not to be: that is the question.\n",
        "'Brave' was the word [Exit.]\n",
    ],
)
def test_detokenised_raw_text_is_the_text(text):
    assert detokenise(tokens(text, RAW), RAW) == text


def test_detokenised_lowercase_text_has_its_capitals():
    text = "To be, or not to be?\nSo I think. 'Tis what I'd say.\n"
    assert detokenise(tokens(text, LOWER), LOWER) == text


def test_paragraphs_words_and_characters_again():
    paragraph = TextOptions(tokenisation="raw", eos="paragraph")
    assert detokenise(tokens("One, two.\n\nThree.\n", paragraph), paragraph) == "One, two.\n\nThree.\n\n"
    assert detokenise(["a", ",", "b", EOS, "c"], WORDS) == "a , b\nc"
    characters = TextOptions(tokenisation="characters")
    assert detokenise(tokens("a, b\nc\n", characters), characters) == "a, b\nc\n"


_TEXT = st.text(
    st.sampled_from(list("abst AB.'\u2019\"-,:;!?()[]<>/&$%_15\n \u0130\u00df\u03a3\u03c3\u0301")),
    max_size=60,
)


@pytest.mark.slow
@given(_TEXT | st.text(max_size=30))
@example("\u0130' th 'tis o ' a")
@example("1 , 5 . 5 - - - . . . <unk> < unk >")
@pytest.mark.parametrize("options", [RAW, LOWER, TextOptions(tokenisation="raw", eos="paragraph")])
def test_the_same_tokens_again(options, text):
    once = tokens(text, options)
    again = tokens(detokenise(once, options), options)
    assert again == once


ENGLISH = "It is a truth universally acknowledged; internationalisation, 3.14159265358979 and naïveté too.\n"
JAPANESE = "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ENGLISH, True),
        (JAPANESE, False),
        ("吾輩 は 猫 で ある 。 名前 は まだ 無い 。 テレビ も\n" * 3, True),
        ("ฉันรักภาษาไทยมากและอยากเรียนรู้\n", False),
        ("ฉัน รัก ภาษา ไทย มาก และ อยาก เรียน รู้\n", True),
        ("Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz\n", True),
        ("Предусмотрительность человеконенавистничества\n", True),
        ("나는 고양이로소이다 이름은 아직 없다\n", True),
        ("吾輩は LSTM と GRU を用いて言語モデルを学習する (hidden size 650, dropout 0.5).\n", False),
        (ENGLISH * 9 + JAPANESE[:17], True),
        (ENGLISH + JAPANESE, False),
        ("我是貓。還沒有名字。也不知道在哪裡出生。\n", False),
    ],
)
def test_words_between_spaces(text, words):
    assert has_words(sum(map(unseparated, text.splitlines())), len(text)) == words


def test_marks_and_figures_are_no_letters():
    assert unseparated("、。「」『』・〽〜〜〜〜〜〜") == 0
    assert unseparated("２０２４年１２月３１日２３時５９分") == 0
    assert unseparated("ｱｲｳｴｵｶｷｸｹ") == unseparated("国々のコーヒーと〆") == 9


def test_eight_letters_may_be_a_word():
    assert unseparated("トランポリンだ") == 0
    assert unseparated("アイスクリーム屋さん") == 10
