"""Grammars: what a file says, sentences with their parse, and the exact distribution of the next word."""

import itertools
import math
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from elman.config.text import GrammarOptions, Stage
from elman.data.grammar.exact import Oracle
from elman.data.grammar.reading import parse_grammar, read_grammar, shipped
from elman.data.grammar.sample import Leaf, Wish, annotate, grammar_folder, sentences, stage_tokens
from elman.errors import UserError

TINY = """
start S
number sg pl
nouns N
verbs V
embedding RC
S -> NP[n] VP[n]
NP[n] -> N[n] (3) | N[n] RC[n] (1)
RC[n] -> Who NP[m] V[m]
VP[n] -> V[n]
N[sg] : dog (2) cat
N[pl] : dogs cats
V[sg] : sees hears
V[pl] : see hear
Who : who
"""


def draw(grammar, count, wish=None, seed="s"):
    return list(islice(sentences(grammar, wish or Wish(), seed), count))


def all_sentences(grammar, symbol, depth, max_depth):
    """Every word sequence of a symbol with its probability, by writing the grammar out."""
    if symbol in grammar.words:
        return [((word,), p) for word, p in grammar.words[symbol].items()]
    found = Counter()
    inner = depth + (symbol in grammar.embedding)
    for parts, probability in grammar.alternatives(symbol, inner, max_depth):
        for choice in itertools.product(*(all_sentences(grammar, one.symbol, inner, max_depth) for one in parts)):
            words = tuple(word for part, _ in choice for word in part)
            found[words] += probability * math.prod(p for _, p in choice)
    return list(found.items())


@pytest.mark.parametrize("name", ["elman-1991", "prepositions"])
def test_every_verb_has_the_number_of_its_noun(name):
    """In the grammars of number alone every verb has one dependency, up to two levels from its noun."""
    grammar = read_grammar(name)
    nouns, verbs = (
        {word: grammar.values[symbol]["number"] for symbol in symbols for word in grammar.words[symbol]}
        for symbols in (grammar.controllers, grammar.targets)
    )
    found = draw(grammar, 300)
    links = [(sentence, one) for sentence in found for one in sentence.dependencies]
    for sentence, one in links:
        assert sentence.words[one.target] == one.right
        assert nouns[sentence.words[one.controller]] == verbs[one.right] == one.value != verbs[one.wrong]
        between = sentence.words[one.controller + 1 : one.target]
        assert one.attractors == sum(word in nouns and nouns[word] != one.value for word in between)
    assert len(links) == sum(word in verbs for sentence in found for word in sentence.words)
    assert {one.levels for _, one in links} >= {0, 1, 2}


@pytest.mark.parametrize("name", shipped())
def test_every_target_has_the_value_of_its_controller(name):
    """A right form agrees in its feature, and no sentence of the grammar begins with the wrong one."""
    grammar = read_grammar(name)
    found = draw(grammar, 300)
    oracle = Oracle(grammar, Wish(), [*grammar.vocabulary, "<eos>"])
    symbols = {word: symbol for symbol in grammar.controllers for word in grammar.words[symbol]}
    links = [(sentence, one) for sentence in found for one in sentence.dependencies]
    for sentence, one in links:
        assert sentence.words[one.target] == one.right
        assert grammar.values[symbols[sentence.words[one.controller]]][one.feature] == one.value != one.other
        first, last = sorted((one.controller, one.target))
        between = [grammar.values[symbols[word]] for word in sentence.words[first + 1 : last] if word in symbols]
        assert one.attractors == sum(values.get(one.feature, one.value) != one.value for values in between)
        forms = grammar.forms(one.feature, set(grammar.vocabulary))
        assert one.right in forms[one.value]
        assert one.wrong in forms[one.other]
    for sentence, one in links[:150]:
        for form, possible in ((one.right, True), (one.wrong, False)):
            parses = oracle.begin()
            for word in [*sentence.words[: one.target], form, *sentence.words[one.target + 1 : one.end + 1]]:
                parses = oracle.read(parses, word)
            assert bool(parses) == possible
    assert {one.feature for _, one in links} == set(grammar.features)
    assert {one.levels for _, one in links} >= {0, 1}


LATIN = """
start S
feature gender f m
feature number sg pl
feature case nom acc dat
controllers N V
targets Det
S -> Det[g,n,nom] N[g,n] V[n,c] Det[g2,n2,c] N[g2,n2]
N[f,sg] : Frau
N[f,pl] : Frauen
N[m,sg] : Mann
N[m,pl] : Männer
V[sg,acc] : sieht
V[pl,acc] : sehen
V[sg,dat] : hilft
V[pl,dat] : helfen
V[n,nom]  : bleibt
Det[f,sg,nom] : die
Det[f,sg,acc] : die
Det[f,sg,dat] : der
Det[m,sg,nom] : der
Det[m,sg,acc] : den
Det[m,sg,dat] : dem
Det[g,pl,nom] : die
Det[g,pl,acc] : die
Det[g,pl,dat] : den
"""


def test_a_pair_is_wrong_in_one_feature_and_case_is_governed_by_the_verb():
    """die Frau hilft dem Mann: gender and number of each determiner, case of the second by the verb, by hand."""
    grammar = parse_grammar(LATIN)
    found = next(one for one in draw(grammar, 3000) if one.words == ("die", "Frau", "hilft", "dem", "Mann"))
    assert [tuple(one[:7]) for one in found.dependencies] == [
        (1, 0, "die", "der", "gender", "f", "m"),
        (4, 3, "dem", "der", "gender", "m", "f"),
        (4, 3, "dem", "den", "number", "sg", "pl"),
        (2, 3, "dem", "der", "case", "dat", "nom"),
        (2, 3, "dem", "den", "case", "dat", "acc"),
    ]


def test_levels_and_depth_of_a_sentence_known_by_hand():
    """dogs who cat who boys see hears walk: the outer verb is two levels from its noun."""
    grammar = parse_grammar(TINY)
    words = ["dogs", "who", "cat", "who", "cats", "see", "hears", "see"]
    symbols = ["N[pl]", "Who", "N[sg]", "Who", "N[pl]", "V[pl]", "V[sg]", "V[pl]"]
    bonds = [0, None, 1, None, 2, 2, 1, 0]
    clauses = [(), (0,), (0,), (0, 1), (0, 1), (0, 1), (0,), ()]
    shared = [{} if bond is None else {"number": bond} for bond in bonds]
    found = annotate(grammar, [Leaf(*leaf) for leaf in zip(words, symbols, shared, clauses, strict=True)])
    assert [(one.controller, one.target, one.levels, one.depth, one.attractors) for one in found.dependencies] == [
        (4, 5, 0, 2, 0),
        (2, 6, 1, 1, 1),
        (0, 7, 2, 0, 1),
    ]
    assert [one.wrong for one in found.dependencies] == ["sees", "hear", "sees"]
    assert found.depth == 2


def test_verbs_of_one_form_show_no_agreement():
    grammar = parse_grammar(
        "verbs V\nnouns N\nS -> N[n] V[n]\nN[sg] : cat\nN[pl] : cats\nV[sg] : put sees\nV[pl] : put see"
    )
    assert grammar.forms("number", grammar.vocabulary) == {"sg": ("sees",), "pl": ("see",)}
    for sentence in draw(grammar, 30):
        assert len(sentence.dependencies) == ("put" not in sentence.words)


@pytest.mark.slow
def test_sentences_obey_the_wish_that_they_are_drawn_with():
    grammar = read_grammar("elman-1991")
    assert max(one.depth for one in draw(grammar, 300, Wish(max_depth=1))) == 1
    assert max(len(one.words) for one in draw(grammar, 300, Wish(max_length=5))) <= 5
    assert all(one.depth == 0 for one in draw(grammar, 100, Wish(complex=0.0)))
    assert all(one.depth > 0 for one in draw(grammar, 100, Wish(complex=1.0)))
    assert draw(grammar, 20) == draw(grammar, 20) != draw(grammar, 20, seed="t")
    with pytest.raises(UserError, match="none of 10,000 sentences was complex and within max_depth = 0; raise"):
        draw(parse_grammar(TINY), 1, Wish(complex=1.0, max_depth=0))
    with pytest.raises(UserError, match="none of 10,000 sentences was within max_length = 1; raise"):
        draw(grammar, 1, Wish(max_length=1))


def test_a_share_of_sentences_that_the_rules_do_not_give():
    """Also where few sentences are drawn, none of which is complex by chance."""
    for text, wish in (("S -> N\nN : dog cat\n", Wish(0.01)), (TINY, Wish(0.5, max_depth=0))):
        grammar = parse_grammar(text)
        with pytest.raises(UserError, match=rf"the rules give no complex sentence.*and complex = {wish.complex}"):
            Oracle(grammar, wish, [*grammar.vocabulary, "<eos>"])


@pytest.mark.parametrize("share", [None, 0.3, 1.0])
def test_the_oracle_is_the_grammar_written_out(share):
    """Sentence probabilities, and every next-word distribution by summing over all sentences."""
    grammar = parse_grammar(TINY)
    whole = dict(all_sentences(grammar, "S", 0, 1))
    assert sum(whole.values()) == pytest.approx(1)
    if share is not None:
        simple = sum(p for words, p in whole.items() if "who" not in words)
        scale = {True: share / (1 - simple), False: (1 - share) / simple}
        whole = {words: p * scale["who" in words] for words, p in whole.items()}
    names = [*grammar.vocabulary, "<eos>"]
    oracle = Oracle(grammar, Wish(share, max_depth=1), names)
    for words in (("dogs", "who", "cat", "sees", "hear"), ("cat", "hears")):
        if whole[words]:
            assert oracle.log_prob(words) == pytest.approx(math.log(whole[words]))
        parses = oracle.begin()
        for at, word in enumerate(words):
            ahead = Counter()
            for other, probability in whole.items():
                if other[:at] == words[:at]:
                    ahead[(*other, "<eos>")[at]] += probability
            expected = np.array([ahead[name] for name in names]) / ahead.total() if ahead.total() else None
            if expected is not None:
                np.testing.assert_allclose(oracle.next_words(parses), expected, atol=1e-12)
            parses = oracle.read(parses, word)


@pytest.mark.slow
def test_samples_have_the_oracles_entropy():
    """Mean -log p of drawn sentences is near the mean entropy along them."""
    grammar = read_grammar("prepositions")
    wish = Wish(complex=0.5, max_depth=2)
    oracle = Oracle(grammar, wish, [*grammar.vocabulary, "<eos>"])
    surprise = entropy = 0.0
    for sentence in draw(grammar, 250, wish):
        parses = oracle.begin()
        for word in [*sentence.words, "<eos>"]:
            p = oracle.next_words(parses)
            assert p.sum() == pytest.approx(1)
            surprise -= math.log(p[oracle.index[word]])
            entropy -= float((p[p > 0] * np.log(p[p > 0])).sum())
            parses = oracle.read(parses, word) if word != "<eos>" else parses
    assert surprise == pytest.approx(entropy, rel=0.05)


MISTAKES = {
    "S -> NP VP extra": ("7:6", "S needs NP, which is not defined; line 8 has NP[sg]"),
    "S -> NP[n] VP[n] | ": ("7:18", "an alternative is empty"),
    "S ->": ("7:1", "S has nothing after ->"),
    "Who :": ("7:1", "Who has nothing after :"),
    "S => NP[n]": ("7:1", "cannot read 'S => NP[n]'"),
    "S -> N[n] (0)": ("7:11", "'(0)' is not a weight"),
    f"S -> N[n] ({'9' * 120})": ("7:11", f"'({'9' * 120})' is not a weight"),
    f"S -> N[n] (.{'0' * 120}1)": ("7:11", f"'(.{'0' * 120}1)' is not a weight"),
    "S -> NP[n VP": ("7:6", "'NP[n' is not a symbol"),
    "S -> S VP[n]": ("7:1", "S can begin with itself"),
    "S -> A\nA -> S Who": ("7:1", "S can begin with itself (S -> A -> S)"),
    "S -> N[n] S": ("7:1", "S never ends"),
    "S -> RC[n]": ("7:1", "every alternative of S opens a clause"),
    "N[sg] : dog\nS -> N[n]": ("12:1", "the words of N[sg] stand in line 7 already"),
    "start T\nS -> N[n]": ("7:1", "start appears twice"),
    "feature\nS -> N[n]": ("7:1", "feature names nothing; write for example: feature gender f m"),
    "feature gender\nS -> N[n]": ("7:9", "gender has no values"),
    "feature gender sg f\nS -> N[n]": ("7:16", "'sg' is a name of number already"),
    "feature gender f m\nS -> Who N[x]": ("8:10", "'x' in 'N[x]' is no value, and begins the name of no feature"),
    "feature gender f m\nS -> N[n,pl]": ("8:6", "'N[n,pl]' has two values of number, n and pl"),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_names_its_line_and_column(line):
    where, message = MISTAKES[line]
    with pytest.raises(UserError) as error:
        parse_grammar(TINY.replace("S -> NP[n] VP[n]", line), "my.grammar")
    assert str(error.value).startswith(f"my.grammar:{where}: {message}")
    assert "\n" not in str(error.value)


def test_the_smallest_weight_is_one():
    least = parse_grammar(TINY.replace("S -> NP[n] VP[n]", f"S -> NP[n] VP[n] (.{'0' * 99}1)"))
    assert least.rules == parse_grammar(TINY).rules


def test_what_no_sentence_uses_is_remarked_on(capsys):
    parse_grammar(f"{TINY.replace('[m]', '[n2]')}Adverb : today\nfeature tense past present\n", "unused.grammar")
    assert capsys.readouterr().err.splitlines() == [
        "elman: unused.grammar:16:1: no sentence has Adverb: no rule leads to it from S",
        "elman: unused.grammar:17:9: no symbol has the feature tense",
    ]


def test_mistakes_of_the_whole():
    for old, new, message in (
        ("V[pl] : see hear", "V[pl] : see", "V[pl] has 1 word and V[sg] 2; write all forms"),
        ("nouns N", "nouns", "my.grammar:4:1: nouns names nothing; write for example: nouns S"),
        ("nouns N", "nouns Noun", "my.grammar:4:7: nouns names Noun, which has no words"),
        ("start S", "start T", "my.grammar:2:7: the start symbol T has no rules"),
        ("number sg pl", "number sg", "my.grammar:3:1: number has sg; write two different values"),
        ("nouns N", "nouns Who", "Who has no number; write Who[sg] : WORDS"),
        ("sees hears", "sees sees", "the word 'sees' appears twice or is reserved"),
    ):
        with pytest.raises(UserError) as error:
            parse_grammar(TINY.replace(old, new), "my.grammar")
        assert message in str(error.value)
    with pytest.raises(UserError, match=r"cannot be read .*; give a file of rules, or one of elman-1991"):
        read_grammar("no-such-grammar")


def test_a_folder_is_written_once_and_knows_its_stages(tmp_path):
    options = GrammarOptions(
        sentences=30, valid=5, test=5, stages=(Stage(epochs=2, complex=0.0, sentences=10), Stage(complex=1.0))
    )
    folder = grammar_folder(options, tmp_path)
    lines = (folder / "train.txt").read_text().splitlines()
    assert len(lines) == 40
    assert not any("who" in line.split() for line in lines[:10])
    assert all("who" in line.split() for line in lines[10:])
    assert stage_tokens(folder) == [sum(len(line.split()) + 1 for line in part) for part in (lines[:10], lines[10:])]
    header, row, *_ = (folder / "test.agreement.tsv").read_text().splitlines()
    cells = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    words = (folder / "test.txt").read_text().splitlines()[int(cells["sentence"]) - 1].split()
    assert words[int(cells["target"])] == cells["right"]
    before = (folder / "train.txt").stat().st_mtime_ns
    assert grammar_folder(options, tmp_path) == folder
    assert (folder / "train.txt").stat().st_mtime_ns == before


def test_words_of_a_grammar_may_have_no_break_spaces():
    grammar = parse_grammar("start S\nS -> N\nN : 10\u00a0000 (2) cent\n")
    assert set(grammar.words["N"]) == {"10\u00a0000", "cent"}
