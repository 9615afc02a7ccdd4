"""Pairs in characters and in subwords: found in training alone, exact, saved with the run."""

import msgspec
import pytest

from elman.config.text import SubwordOptions, identity
from elman.data.text.vocabulary import EOS, UNK
from elman.errors import UserError
from elman.kinds.pairs.corpus import open_pairs
from elman.kinds.pairs.measures import baseline, measures, references, rules_of
from elman.kinds.pairs.record import PairOptions
from elman.kinds.pairs.symbols import PairSymbols

SOURCES = [f"le chat noir dort sur {number} lits rouges" for number in range(40)]
TARGETS = [f"The black cat sleeps  on {number} red beds" for number in range(40)]
HELD = ("le chat ÿ", "The cat\u2009ÿ 猫")
SUBWORDS = PairOptions(tokenisation="subwords", subwords=SubwordOptions(size=320), split="last", valid=1, test=1)


def corpus_of(folder, options=SUBWORDS):
    pairs = [*zip(SOURCES, TARGETS, strict=True), HELD]
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return open_pairs(path, options)


@pytest.mark.parametrize("shared", [False, True])
def test_any_pair_comes_back_exactly_from_its_subwords(tmp_path, shared):
    """Also spaces in a row, and letters that training never had."""
    corpus = corpus_of(tmp_path, msgspec.structs.replace(SUBWORDS, shared_vocabulary=shared))
    symbols = corpus.symbols
    for text in (TARGETS[3], HELD[1]):
        ids = symbols.target.encode(symbols.tokenisers.target_words(text))
        assert symbols.target.unk not in ids
        assert symbols.tokenisers.shown(symbols.target.decode(ids)) == text
        assert symbols.tokenisers.measured(symbols.target.decode(ids)) == text
    assert len(symbols.encode_source(HELD[0], "in:1")) == len(symbols.tokenisers.source_words(HELD[0]))
    assert (symbols.tokenisers.source.subwords is symbols.tokenisers.target.subwords) == shared
    assert all(pairs.facts["unknown"] == pairs.facts["source_unknown"] == 0 for pairs in corpus.splits.values())
    assert len(symbols.tokenisers.target_words(TARGETS[3])) < len(TARGETS[3]) / 2


def test_models_of_each_side_see_its_training_texts_alone(tmp_path):
    tokenisers = corpus_of(tmp_path).symbols.tokenisers
    ours, theirs = ("".join(one.subwords.pieces) for one in (tokenisers.source, tokenisers.target))
    assert "chat" in ours
    assert "cat" in theirs
    assert "T" not in ours.replace("<0x", "")
    assert not {"ÿ", "猫"} & set(ours + theirs)


@pytest.mark.parametrize("shared", [False, True])
def test_models_are_saved_with_the_run(tmp_path, shared):
    corpus = corpus_of(tmp_path, msgspec.structs.replace(SUBWORDS, shared_vocabulary=shared))
    corpus.symbols.save(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").glob("*.model")}
    assert names == ({"subwords.model"} if shared else {"source-subwords.model", "target-subwords.model"})
    loaded = PairSymbols.load(tmp_path / "run", corpus.options)
    assert loaded.digest == corpus.symbols.digest
    assert loaded.tokenisers.target_words(HELD[1]) == corpus.symbols.tokenisers.target_words(HELD[1])
    again = open_pairs(tmp_path / "pairs.tsv", corpus.options, symbols=loaded)
    assert again.digest == corpus.digest
    (tmp_path / "run" / sorted(names)[-1]).unlink()
    with pytest.raises(UserError, match=r"subwords.model: cannot be read .*restore the file of the run"):
        PairSymbols.load(tmp_path / "run", corpus.options)


def test_letters_may_be_folded(tmp_path):
    corpus = corpus_of(tmp_path, msgspec.structs.replace(SUBWORDS, lowercase=True))
    assert references(corpus.split("test"), corpus.symbols) == [HELD[1].lower()]
    assert not any("T" in piece for piece in corpus.symbols.target.words if not piece.startswith("<0x"))


def test_characters_are_exact_where_they_are_known(tmp_path):
    corpus = corpus_of(tmp_path, PairOptions(tokenisation="characters", split="last", valid=1, test=1))
    assert corpus.symbols.tokenisers.target_words("a b") == ["a", " ", "b"]
    assert references(corpus.split("test"), corpus.symbols) == [HELD[1]]
    assert corpus.split("test").facts["unknown"] == 3
    assert UNK in corpus.symbols.target.decode(corpus.split("test").target[0])


@pytest.mark.parametrize("tokenisation", ["characters", "subwords"])
def test_measures_see_texts_and_not_pieces(tmp_path, tokenisation):
    """The right output has all points, and a word counts as a word for BLEU."""
    options = PairOptions(tokenisation=tokenisation, split="last", valid=1, test=1, subwords=SUBWORDS.subwords)
    corpus = corpus_of(tmp_path, options)
    pairs = corpus.split("valid")
    right = references(pairs, corpus.symbols)
    assert right == [TARGETS[-1]]
    assert [round(one.value) for one in measures(right, right, rules_of(options))] == [100, 100, 100]
    assert baseline(corpus, pairs) == ("copied source", [SOURCES[-1]])
    name, (first,) = baseline(corpus_of(tmp_path, msgspec.structs.replace(options, measures="headlines")), pairs)
    assert name.endswith(tokenisation)
    assert SOURCES[-1].startswith(first)


def test_what_a_model_spells_stays_on_its_line(tmp_path):
    tokenisers = corpus_of(tmp_path).symbols.tokenisers
    assert tokenisers.shown(["<0x0A>", "a", "<0xE3>", "b", "<0x0D>"]) == " a\ufffdb "


def test_an_end_symbol_in_the_text_is_no_end(tmp_path):
    assert EOS not in corpus_of(tmp_path).symbols.tokenisers.target_words("one <eos> two")


def test_bleu_may_count_characters():
    rules = rules_of(PairOptions(tokenisation="characters", bleu_tokens="char"))
    found = measures(["猫が鳴く。"], ["猫は鳴く。"], rules)[0]
    assert "tok:char" in found.signature
    assert found.value > 0


def test_digests_of_old_pairs_stay():
    """What a run of the first version has hashed."""
    assert identity(PairOptions()) == (
        '{"form":"tsv","functions":false,"languages":null,"lowercase":false,"max_source":100,"max_target":100,'
        '"max_vocabulary":null,"measures":"translation","min_count":1,"reverse_source":false,"rouge_words":"english",'
        '"shared_vocabulary":false,"skip_empty":false,"split":"hash","tags":"XX","test":2000,"tokenisation":"words",'
        '"valid":2000}'
    )
    assert "subwords" in msgspec.json.decode(identity(SUBWORDS))


def test_options_that_do_not_fit(tmp_path):
    for options in ({"min_count": 2}, {"max_vocabulary": 100}):
        with pytest.raises(ValueError, match='with tokenisation = "subwords"'):
            PairOptions(tokenisation="subwords", **options)
    with pytest.raises(ValueError, match="trees come in words"):
        PairOptions(tokenisation="subwords", form="trees")
    (tmp_path / "rich.tsv").write_text("".join(f"{chr(0x4E00 + n)}a\t{chr(0x5E00 + n)}b\n" for n in range(100)))
    fewest = msgspec.structs.replace(SUBWORDS, subwords=SubwordOptions(size=300, coverage=1.0))
    with pytest.raises(UserError, match=r"data.subwords.size = 300 with kind = 'bpe'") as caught:
        open_pairs(tmp_path / "rich.tsv", fewest)
    assert "\n" not in str(caught.value)
