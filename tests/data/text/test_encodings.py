"""Texts in other encodings: decoded by their mark, refused with a proposal that works, or reported as misread."""

import codecs
import gzip

import pytest

from elman.cli import main
from elman.config.text import TextOptions
from elman.data.text import guessing
from elman.data.text.corpus import open_corpus
from elman.data.text.encodings import ENCODING
from elman.data.text.guessing import propose, report_misread
from elman.data.text.utf8 import read_text
from elman.errors import UserError

ENGLISH = "He said, \u201cDon\u2019t go\u201d \u2014 that is all. The dog\u2019s tail wagged again.\n" * 20
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。\n" * 20
RUSSIAN = "Привет, как дела? Это текст на русском языке, довольно длинный.\n" * 20
CHINESE = "这是一个中文的测试文本,包含许多常用汉字。我们今天去北京看朋友。\n" * 20
HEBREW = "כל המשפחות המאושרות דומות זו לזו.\nבבוקר יצא הזקן מן הבית והלך אל הים.\n" * 20
KOREAN = "나는 학교에 갔습니다. 오늘은 날씨가 매우 좋습니다.\n" * 20
ARABIC = "خرج الرجل من بيته في الصباح وذهب إلى السوق ليشتري الخبز.\n" * 20
HUNGARIAN = "Reggel az öregember kilépett a házból. Senki sem tudta már, ki építette; sűrű erdő volt.\n" * 20
CAT = "a cat sat\non the mat\nand was fat\n" * 40


def opened(path, tmp_path, **options):
    return open_corpus(path, TextOptions(**options), cache=tmp_path / "cache")


def refused(path, tmp_path, **options):
    with pytest.raises(UserError) as error:
        opened(path, tmp_path, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE])
def test_a_mark_states_the_encoding(tmp_path, capsys, mark):
    name = {
        codecs.BOM_UTF16_LE: "utf-16-le",
        codecs.BOM_UTF16_BE: "utf-16-be",
        codecs.BOM_UTF32_LE: "utf-32-le",
        codecs.BOM_UTF32_BE: "utf-32-be",
    }[mark]
    plain, path = tmp_path / "plain.txt", tmp_path / "text.txt"
    plain.write_text(CAT)
    path.write_bytes(mark + CAT.encode(name))
    found, expected = opened(path, tmp_path), opened(plain, tmp_path)
    assert found.vocabulary.words == expected.vocabulary.words
    assert found.digest == expected.digest
    assert (found.name, found.source) == ("text", str(path))
    line = f"elman: {path}: read as {name[:6].upper()}, which its byte order mark states\n"
    assert capsys.readouterr().err == line
    assert read_text(path) == CAT
    assert capsys.readouterr().err == ""


SHORT = {
    "吾輩は猫である。名前はまだ無い。\n" * 200: ["cp932", "euc_jp"],
    "親譲りの無鉄砲で小供の時から損ばかりしている。\n": ["cp932", "euc_jp"],
    "我们喜欢学习新的东西,因为这很有意思。\n": ["gb18030"],
    "我們喜歡學習新的東西,因為這很有意思。\n": ["big5"],
    "나는 학교에 갔습니다. 오늘은 날씨가 매우 좋습니다.\n": ["cp949"],
    "Все счастливые семьи похожи друг на друга.\n": ["cp1251", "koi8_r", "cp866"],
    "L'été dernier, nous étions à la plage; c'était très agréable.\n": ["cp1252", "mac_roman"],
    "Über den Wäldern hängt Nebel, und größere Vögel fliegen südwärts.\n": ["cp1252"],
    "Zażółć gęślą jaźń. Wszystkie szczęśliwe rodziny są do siebie podobne.\n": ["cp1250", "iso8859_2"],
}


@pytest.mark.parametrize(("text", "codec"), [(text, codec) for text, codecs in SHORT.items() for codec in codecs])
def test_the_encoding_of_a_short_text_is_among_those_that_are_named(text, codec):
    data = text.encode(codec)
    assert text in [data.decode(one) for one in propose(lambda: [data])]


def test_a_folder_may_mix_encodings(tmp_path):
    for split, encoding in [("train", "utf-16"), ("valid", "utf-8-sig"), ("test", "utf-32")]:
        (tmp_path / f"{split}.txt").write_bytes(CAT.encode(encoding))
    corpus = opened(tmp_path, tmp_path)
    assert {len(split.tokens) for split in corpus.splits.values()} == {len(CAT.split()) + CAT.count("\n")}
    assert all("\ufeff" not in word for word in corpus.vocabulary.words)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("eos", ["line", "none"])
def test_a_byte_order_mark_changes_nothing(tmp_path, pack, eos):
    name = "text.txt" if pack is bytes else "text.txt.gz"
    found = []
    for folder, text in (("plain", CAT * 9), ("marked", f"\ufeff{CAT * 9}")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(pack(text.encode()))
        found.append(opened(tmp_path / folder / name, tmp_path, eos=eos))
    plain, marked = found
    assert marked.digest == plain.digest
    for split in plain.splits:
        assert marked.split(split).tokens.tolist() == plain.split(split).tokens.tolist()
    exact = opened(tmp_path / "marked" / name, tmp_path, tokenisation="characters", eos="exact")
    assert exact.vocabulary.decode(exact.split("train").tokens[:2]) == ["\ufeff", CAT[0]]


def test_the_place_of_a_wrong_byte_counts_a_byte_order_mark(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbfa cat\nsat \x94there\x94\n" + CAT.encode())
    assert refused(path, tmp_path).startswith(f"{path}: not UTF-8 at byte 13 (0x94)")


@pytest.mark.parametrize(("data", "place"), [(b"\xff\xfea\0b", "near byte 5"), (b"\xff\xfe\0\xd8a\0", "near byte 2")])
def test_a_damaged_marked_text(tmp_path, data, place):
    path = tmp_path / "damaged.txt"
    path.write_bytes(data)
    line = refused(path, tmp_path)
    assert line.startswith(f"{path}: begins with the mark of UTF-16, but is damaged {place} (")


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (ENGLISH, "cp1252"),
        (ENGLISH, "mac_roman"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (JAPANESE, "utf_16_be"),
        (JAPANESE, "utf_32_le"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (RUSSIAN, "utf_16_le"),
        (CHINESE, "gb18030"),
        (CHINESE, "hz"),
        (CHINESE, "utf_7"),
        (HUNGARIAN, "utf_7"),
        (HEBREW, "cp1255"),
        (KOREAN, "iso2022_kr"),
        (ARABIC, "cp1256"),
        (HUNGARIAN, "cp1250"),
    ],
)
@pytest.mark.parametrize("control", ["", "\x1a\n"], ids=["plain", "control"])
def test_the_option_that_is_shown_reads_the_text(tmp_path, monkeypatch, text, codec, control):
    """The first line below the refusal shows the text as it is, and names the encoding that reads it."""
    path = tmp_path / "novel.txt"
    path.write_bytes((text + control).encode(codec))
    with pytest.raises(UserError, match=r"not UTF-8.*; it looks like") as error:
        read_text(path)
    option, name, shown = error.value.__notes__[0].split(maxsplit=2)
    assert option == "--encoding"
    assert shown in text.replace("\n", " ")
    monkeypatch.setenv(ENCODING, name)
    assert read_text(path) == text + control


def test_the_option_of_the_command_line(tmp_path, capsys, monkeypatch):
    path, table = tmp_path / "he.txt", tmp_path / "he.tsv"
    path.write_bytes(HEBREW.encode("cp1255"))
    table.write_bytes(b"good\tbad\n" + HEBREW.split("\n")[0].replace(" ", "\t", 1).encode("cp1255") + b"\n")
    plain, arpa = tmp_path / "plain.txt", str(tmp_path / "he.arpa")
    plain.write_text(HEBREW, encoding="utf-8")
    assert main(["ngram", "train", str(path), "--order", "2", "--out", arpa]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"elman: {path}: not UTF-8 at byte 0")
    assert lines[1].startswith("  --encoding cp1255")
    assert main(["ngram", "train", str(path), "--order", "2", "--out", arpa, "--encoding", "windows-1255"]) == 0
    assert f"{path}: read as CP1255, which --encoding says" in capsys.readouterr().err
    assert main(["ngram", "score", arpa, str(plain), "--encoding=cp1255"]) == 0  # what is UTF-8 stays so
    out = capsys.readouterr().out
    assert main(["--encoding", "cp1255", "ngram", "score", arpa, str(path)]) == 0
    assert capsys.readouterr().out.replace("he.txt", "plain.txt") == out
    assert main(["minimal-pairs", arpa, "--pairs", str(table)]) == 2
    assert "--encoding cp1255" in capsys.readouterr().err
    for name, line in [
        ("cp125x", "no encoding of texts"),
        ("utf-16", "utf-16-le or utf-16-be"),
        ("zip", "no encoding"),
    ]:
        assert main(["ngram", "train", str(path), "--encoding", name]) == 2
        assert line in capsys.readouterr().err
    assert main(["ngram", "train", str(path), "--out", arpa, "--encoding", "shift_jis"]) == 2
    assert "is not SHIFT_JIS, which --encoding names" in capsys.readouterr().err
    assert main(["ngram", "train", str(path), "--encoding"]) == 2
    assert capsys.readouterr().err == "elman: --encoding needs the name of an encoding\n"


def test_a_text_cut_within_its_last_character(tmp_path, capsys):
    path = tmp_path / "cut.txt"
    path.write_bytes("le café était\nfermé".encode()[:-1])
    assert read_text(path) == "le café était\nferm"
    assert "ends within a character, at byte 20;" in capsys.readouterr().err
    path.write_bytes(b"plain words\nand a caf\xe9")
    with pytest.raises(UserError, match=r"not UTF-8 at byte 21 \(0xe9\); it looks like"):
        read_text(path)


def test_lines_in_another_encoding(tmp_path):
    path = tmp_path / "mixed.txt"
    french = "le café était fermé, déjà\n".encode()
    path.write_bytes(french * 9 + b"d\xe9j\xe0 vu\n" + french)
    with pytest.raises(UserError, match=r"10 lines with letters beyond ASCII are; mend line 10 \(byte 280\)") as error:
        read_text(path)
    assert any(line.endswith("  déjà vu") for line in error.value.__notes__)


@pytest.mark.parametrize("text", ["Figure~{\\ref{x}~} is ~{here}\n", "a \x1b[1mbold\x1b[0m word\n", "naïve \x1b$ é\n"])
def test_what_only_resembles_escapes_is_utf_8(tmp_path, text):
    path = tmp_path / "plain.txt"
    path.write_text(text * 9, encoding="utf-8")
    assert read_text(path) == text * 9


def test_iso_2022_cn_is_refused(tmp_path):
    path = tmp_path / "cn.txt"
    path.write_bytes(b"abc \x1b$)A\x0e<:!\x0f\n" * 9)
    assert "ISO-2022-CN" in refused(path, tmp_path)


@pytest.mark.parametrize(
    ("accents", "shown"), [(1, "judged by only 1 character "), (9, "by only 9 characters"), (10, "")]
)
def test_a_proposal_by_few_characters_says_so(tmp_path, accents, shown):
    path = tmp_path / "text.txt"
    path.write_bytes(b"plain words\n" * 300 + "the word café is French\n".encode("cp1252") * accents)
    line = refused(path, tmp_path)
    assert shown in line
    assert ("judged by" in line) == bool(shown)


def test_bytes_are_read_as_they_are(tmp_path, capsys):
    path = tmp_path / "any.bin"
    path.write_bytes(CAT.encode("utf-16"))
    corpus = opened(path, tmp_path, tokenisation="bytes", eos="exact")
    assert sum(split.num_bytes for split in corpus.splits.values()) == path.stat().st_size
    assert capsys.readouterr().err == ""


def test_control_characters_beside_letters(tmp_path):
    path = tmp_path / "ar.txt"
    path.write_bytes(("ذهب الولد\x07 إلى المدرسة في الصباح.\n" * 5).encode("cp1256"))
    with pytest.raises(UserError) as error:
        read_text(path)
    assert error.value.__notes__[0].startswith("  --encoding cp1256")


def test_nothing_plausible(tmp_path):
    path = tmp_path / "noise.txt"
    path.write_bytes(bytes(range(256)) * 40)
    line = refused(path, tmp_path)
    assert line.endswith("nor in any encoding that is known here; give a text file in UTF-8")


def test_a_proposal_decodes_the_whole_text():
    late = ["le café était fermé\n".encode("cp1252")] * 2000 + [b"\x81\x8d\n"]
    assert "café" in "".join(late[0].decode(one) for one in propose(lambda: late[:-1]))
    assert not {"cp1252", "iso8859-1"} & set(propose(lambda: late))


def test_characters_across_blocks():
    data = JAPANESE.encode("cp932")
    found = guessing.refusal(lambda: (data[at : at + 7] for at in range(0, len(data), 7)), "a.txt")
    assert found.__notes__[0].startswith("  --encoding cp932  吾輩")


def test_texts_that_were_misread(tmp_path, capsys):
    path = tmp_path / "novel.txt"
    path.write_text("no control\n" * 30 + "don\x92t\nwon\x92t\n" + CAT, encoding="utf-8")
    opened(path, tmp_path)
    line = capsys.readouterr().err
    assert line.startswith(f"elman: {path}: 2 control characters, the first in line 31 (U+0092): Windows-1252 was ")
    assert line.count("\n") == 1
    opened(path, tmp_path)
    assert capsys.readouterr().err == ""


def test_control_characters_across_blocks(capsys):
    report_misread(lambda: [b"a\nb\nc\xc2", b"\x92 d\n\xc2", b"\xa0\n\0"], "blocks.txt")
    assert "2 control characters, the first in line 3 (U+0092)" in capsys.readouterr().err
    report_misread(lambda: ["naïve « café »\n".encode()], "french.txt")
    assert capsys.readouterr().err == ""


def test_one_line_names_the_cure(tmp_path):
    path = tmp_path / "novel.txt"
    path.write_text(CAT.replace("\n", " "))
    assert refused(path, tmp_path).startswith(f"{path}: too short to be cut by whole lines")
    path.write_text(CAT.replace("\n", " ") * 10)
    assert refused(path, tmp_path) == (
        f"{path}: cannot be cut by whole lines: it is one line, so that the valid split would be empty; cut it by words"
        " instead: --set data.eos=none"
    )
    assert set(opened(path, tmp_path, eos="none").splits) == {"train", "valid", "test"}


@pytest.mark.parametrize(
    "line",
    [
        "Call +1 555 1234 or +44 20 7946 0000 now.",
        "The film +bow was seen again and again.",
        "Find it at https://example.org/books/+download today.",
        "x = a + b; y += 1; C++ and +foo, +bar",
        "Grades of C+ and B+; A+B, 2+2 and +- signs.",
        "Il dit caf+AOk- et th+AOk-, \u00e9t\u00e9.",
    ],
)
def test_prose_with_plus_signs_is_utf8(tmp_path, capsys, line):
    path = tmp_path / "novel.txt"
    path.write_text(f"{line}\n" * 20)
    assert read_text(path) == f"{line}\n" * 20
    assert not capsys.readouterr().err


def test_one_word_in_utf7_is_shown(tmp_path, monkeypatch):
    """Both readings are shown, so that a text which means the plus sign can be read too."""
    path = tmp_path / "novel.txt"
    path.write_text("A caf+AOk- in the town.\n" * 20)
    with pytest.raises(UserError, match="it looks like utf-7 or utf-8") as error:
        read_text(path)
    shown = [note.split()[1:4] for note in error.value.__notes__]
    assert shown == [["utf-7", "A", "caf\u00e9"], ["utf-8", "A", "caf+AOk-"]]
    for name, word in (("utf-7", "caf\u00e9"), ("utf-8", "caf+AOk-")):
        monkeypatch.setenv(ENCODING, name)
        assert read_text(path) == f"A {word} in the town.\n" * 20
