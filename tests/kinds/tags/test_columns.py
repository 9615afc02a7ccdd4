"""Words and tags in columns: CoNLL, CoNLL-U, comments, and what is said of damaged lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.data.kinds import look
from elman.errors import UserError
from elman.kinds.tags.columns import TaggedSentence, read_columns, read_lines
from elman.kinds.tags.recognition import recognised
from elman.kinds.tags.record import TagOptions
from support import tagged
from support.pairwise import every_value

CHUNKS = """-DOCSTART- -X- -X-

# CD B-NP
5 CD I-NP
rose VBD B-VP

The DT B-NP
end NN I-NP
"""
UD = """# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_
2.1\tx\tx\tVERB\tV\t_\t_\t_\t_\t_
3\tal mar\tmar\tNOUN\tN\t_\t1\tobl\t_\t_

"""


def read(text, **options):
    return read_lines(text.split("\n"), "file", TagOptions(**options))


def test_the_last_column_is_the_tag_and_documents_are_no_sentences():
    """`#` is a word where its line has as many columns as the others, as in the data of CoNLL 2000."""
    rose = TaggedSentence(["#", "5", "rose"], ["B-NP", "I-NP", "B-VP"])
    assert read(CHUNKS) == [rose, TaggedSentence(["The", "end"], ["B-NP", "I-NP"])]
    assert read(CHUNKS, tag_column=1)[0].tags == ["CD", "CD", "VBD"]
    assert read(CHUNKS, word_column=1, tag_column=0)[0].words == ["CD", "CD", "VBD"]
    assert rose.source == "# 5 rose"


def test_conllu():
    """Comments, multiword tokens and empty nodes are left out; a word may have spaces."""
    assert read(UD, form="conllu") == [TaggedSentence(["vamos", "nos", "al mar"], ["VERB", "PRON", "NOUN"])]
    assert read(UD, form="conllu", tag_column=4)[0].tags == ["V", "P", "N"]


def test_words_without_a_tag_are_counted(capsys):
    assert read(UD.replace("PRON", "_"), form="conllu")[0].tags == ["VERB", "_", "NOUN"]
    assert "1 word with the tag _, which stands for none" in capsys.readouterr().err
    assert not read(UD, form="conllu") or not capsys.readouterr().err


@every_value(between=["\t", " ", "  ", " \t"], end=["", "\n", "\n\n", "\r\n"])
def test_blanks_tabs_and_ends_of_files(between, end):
    pairs = tagged.sentences(5)
    text = tagged.in_columns(pairs, between) + end
    if between != " \t":
        assert [tuple(one) for one in read(text)] == pairs


def test_comments_are_said(tmp_path, capsys):
    (tmp_path / "file").write_text("# a comment\n# another one here\na\tX\n\n# and\nb\tY\n")
    assert [one.words for one in read_columns(tmp_path / "file", TagOptions())] == [["a"], ["b"]]
    said = capsys.readouterr().err
    assert "3 lines before sentences begin with # and have not 2 columns: read as comments" in said


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("a X\nb\n", {}, "file:2: 1 column, and the first line has 2"),
        ("a X\n# b c\n", {}, "file:2: 3 columns, and the first line has 2"),
        ("a\n", {}, 'file:1: one column, .a.; .*of a treebank in brackets set data.form = "trees"'),
        ("a\tX\nb\t\n", {}, "file:2: the tag is empty"),
        ("a\tX\n\tX\n", {}, "file:2: the word is empty"),
        ("a X\n", {"tag_column": 2}, "file:1: 2 columns, and data.tag_column is 2"),
        ("a X\n", {"word_column": 4}, "file:1: 2 columns, and data.word_column is 4"),
        ("a X\n", {"tag_column": 0}, "words and tags are both in column 0"),
        ("\n\n", {}, "file: there is no sentence"),
        ("", {}, "file: there is no sentence"),
        ("-DOCSTART- O\n\n", {}, "file: there is no sentence"),
        ("1\ta\ta\tX\n", {"form": "conllu"}, "file:1: 4 columns; a line of CoNLL-U has 10"),
    ],
)
def test_a_damaged_file_is_named_by_its_line(text, options, says):
    with pytest.raises(UserError, match=says):
        read(text, **options)


def test_options_that_do_not_fit():
    with pytest.raises(ValueError, match='tags = "chunks" is for treebanks'):
        TagOptions(tags="chunks")
    with pytest.raises(ValueError, match="a treebank has no columns"):
        TagOptions(form="trees", tag_column=1)


WORD = st.text(st.characters(blacklist_categories=("Z", "C")), min_size=1, max_size=5).filter(
    lambda word: not word.startswith(("#", "-DOC"))
)


@given(st.lists(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=4), min_size=1, max_size=4))
def test_what_is_written_is_read(pairs):
    text = "\n".join("".join(f"{word}\t{tag}\n" for word, tag in one) for one in pairs)
    assert [list(zip(*one, strict=True)) for one in read(text)] == pairs


@given(st.text(max_size=60))
def test_any_text_is_sentences_or_one_clear_error(text):
    said, found = "", []
    try:
        found = read(text)
    except UserError as error:
        said = str(error)
    assert bool(found) != said.startswith("file")
    assert all(len(one.words) == len(one.tags) > 0 for one in found)
    assert all(word.strip() and tag.strip() for one in found for word, tag in zip(*one, strict=True))


PENN = "the\tDT\ncat\tNN\nsees\tVBZ\nit\tPRP\n.\t.\n"
"""With the tag of the Penn Treebank for a full stop."""


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"{CHUNKS}\n" * 3, "columns"),
        (UD * 2, "conllu"),
        (tagged.in_columns(tagged.sentences(9)), "columns"),
        (f"{PENN}\n" * 9, "columns"),
        ("a dog\tein Hund\n" * 30, None),
        ("the cat\n\nthe dog\n\n" * 9, None),
        ("1 2\n3 4\n\n5 6\n7 8\n", None),
        ("one two three\nfour five\n\nsix seven eight\n", None),
        ("roses red\nviolets blue\n\nsugar sweet\nhoney too\n", None),
        ("", None),
    ],
)
def test_what_files_look_like(text, form):
    assert recognised(text.split("\n")) == form


@pytest.mark.parametrize(("text", "can"), [("a X\nb Y\n", True), ("a X\nb\n", False), ("a\n", False)])
def test_files_that_can_be_read_as_columns(tmp_path, text, can):
    (tmp_path / "file").write_text(text)
    assert ("tags" in look(tmp_path / "file").possible) == can


def test_one_empty_tag_of_a_hundred_words_is_for_the_reader_to_name(tmp_path):
    sentences = (PENN.replace("cat", f"cat{number}") for number in range(20))
    (tmp_path / "file").write_text("\n".join(sentences) + "it\t\n")
    assert look(tmp_path / "file").kind == "tags"
    with pytest.raises(UserError, match="file:120: the tag is empty; every word has a tag"):
        read_columns(tmp_path / "file", TagOptions())


PARSED = [
    [("the", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sees", "VERB", 0, "root"), ("it", "PRON", 3, "obj")],
    [("it", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")],
    [("a", "DET", 2, "det"), ("dog", "NOUN", 3, "nsubj"), ("barks", "VERB", 0, "root"), ("now", "ADV", 3, "advmod")],
] * 6


def parsed(form, between="\t", divided=True, header=""):
    """Dependency columns: a line of `form` for each word, of its number, word, tag, head and relation."""
    lines = [
        [
            form.format(i=at, j=at - 1, w=word, t=tag, h=head, g=head - 1, r=relation)
            for at, (word, tag, head, relation) in enumerate(one, 1)
        ]
        for one in PARSED
    ]
    text = ("\n\n" if divided else "\n").join("\n".join(one) for one in lines)
    return f"{header}{text}\n".replace(" ", between)


@pytest.mark.parametrize(
    "text",
    [
        parsed("{i} {w} {t} {h} {r}"),
        parsed("{i} {w} {t} {h} {r}", between="  "),
        parsed("{i} {w} {t} {h} {r}", divided=False),
        parsed("{i} {w} {t} {h} {r}", header="id form pos head relation\n"),
        parsed("{j} {w} {t} {g} {r}"),
        parsed("{i} {w} {t} {h}"),
        parsed("{w} {t} {h} {r}"),
        parsed("{i} {w} {h} {r} {t}"),
        parsed("{i} {w} {w} {w} {t} {t} _ _ {h} {h} {r} {r} _ _"),
        parsed("{i} {w} {w} {t} {t} _ {h} {r} _ _", between=" "),
        parsed("{i} {w} {t} {h} {r}").replace("1\tit", "1-2\tit's\t_\t_\t_\n1\tit"),
    ],
)
def test_dependency_columns_are_known_by_their_numbers(text):
    assert recognised(text.split("\n")) == "columns"
    found = read(text)
    assert [list(zip(*one, strict=True)) for one in found] == [[word[:2] for word in one] for one in PARSED]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (parsed("{i} {w} {h}"), "words with the heads of their dependencies, without tags"),
        ("det(cat-2, the-1)\nnsubj(sees-3, cat-2)\nroot(ROOT-0, sees-3)\n\n" * 6, "typed dependencies"),
    ],
)
def test_dependencies_without_tags_are_named(tmp_path, text, what):
    path = tmp_path / "file.txt"
    path.write_text(text)
    assert look(path).kind is None
    assert look(path).what.startswith(what)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{at}\tname {at}\tcity {at % 3}\n" for at in range(1, 40)),
        "1 2 3\n2 3 4\n3 4 5\n\n" * 9,
    ],
)
def test_numbered_lines_without_heads_are_no_dependencies(text):
    assert recognised(text.split("\n")) is None


TABLES = {
    "ids": 'sentence_id,word,tag\n1,the,DT\n1,"a, b",NN\n2,it,PRP\n',
    "first": 'Sentence #,Word,POS,Tag\nSentence: 1,the,D,DT\n,"a, b",N,NN\nSentence: 2,it,P,PRP\n',
    "runs": 'id,score,word,tag\n7,1,the,DT\n7,2,"a, b",NN\n9,1,it,PRP\n9,1,is,VB\n',
    "blank": "token;pos\nthe;DT\na, b;NN\n\nit;PRP\n",
    "tabs": "sent_id\tform\tupos\n1\tthe\tDT\n1\ta, b\tNN\n2\tit\tPRP\n",
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_a_table_of_words_and_tags(tmp_path, capsys, text):
    """A column names the sentences, at each word or at the first, or blank lines divide them."""
    path = tmp_path / "tags.csv"
    path.write_text(text)
    assert (look(path).kind, look(path).form) == ("tags", "columns")
    found = read_columns(path, TagOptions())
    assert found[0] == TaggedSentence(["the", "a, b"], ["DT", "NN"])
    assert (len(found), found[1].words[0], found[1].tags[0]) == (2, "it", "PRP")
    assert f"{path}: a table; words are in column" in capsys.readouterr().err


def test_a_table_of_words_and_tags_with_an_empty_cell(tmp_path):
    path = tmp_path / "tags.csv"
    path.write_text("sentence,word,tag\n1,the,DT\n1,,NN\n")
    with pytest.raises(UserError, match=r"tags.csv:3: the word is empty"):
        read_columns(path, TagOptions())
    path.write_text("sentence,word,tag\n1,the,DT\n1,a\n")
    with pytest.raises(UserError, match=r"tags.csv:3: 2 cells, but the header has 3"):
        read_columns(path, TagOptions())
    path.write_text("sentence,lemma,word,tag\n1,D,the,DT\n1,A,a,NN\n")
    assert read_columns(path, TagOptions(word_column=1))[0].words == ["D", "A"]
    with pytest.raises(UserError, match=r"4 columns; set data.word_column and data.tag_column to two of them"):
        read_columns(path, TagOptions(tag_column=4))


@pytest.mark.parametrize(("header", "between"), [("", "\t"), ("", " "), ("", " X "), ("word,tag\n", ",")])
def test_words_and_tags_without_blank_lines_are_refused(tmp_path, between, header):
    """They would be one sentence; a blank line at the end states that they are."""
    path, lines = tmp_path / "tags.csv", PENN.replace("\t", between) * 5
    path.write_text(header + lines)
    assert (look(path).kind, look(path).form) == ("tags", "columns")
    with pytest.raises(UserError, match=r"tags.csv: 25 words with tags and no blank line; put one after each sentence"):
        read_columns(path, TagOptions())
    if not header:
        path.write_text(lines + "\n")
        assert len(read_columns(path, TagOptions())) == 1


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"word{at}\t{'NN' if at % 2 else 'VB'}\n" for at in range(40)) + ".\t.\n",  # a dictionary
        PENN * 3,  # fewer than twenty words
        "the\t3\ncat\t1\nsees\t1\n.\t3\n" * 9,  # numbers
    ],
)
def test_other_columns_without_blank_lines_are_no_sentences(text):
    assert recognised(text.split("\n")) is None


@pytest.mark.parametrize("mark", [",", ""])
def test_verse_with_as_many_words_in_each_line_has_no_tags(mark):
    """The last words of lines are no tags: they end with a mark, or are as many as the first ones."""
    words = ["rose", "heart", "day", "night", "love", "time", "sea", "sky"]
    lines = [f"{words[n % 8]} of the {words[n * 3 % 8]}{mark}" if n % 5 else "" for n in range(200)]
    assert recognised(lines) is None
    tagged_lines = [f"{words[n % 8]} {'NOUN' if n % 2 else 'VERB'}" if n % 5 else "" for n in range(200)]
    assert recognised(tagged_lines) == "columns"
