"""Plain English: phrases that readers of the field do not expect, each with the wording to use instead."""

import ast
import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "benchmarks/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "results").rglob("*.md")),
]
RECIPES = sorted((ROOT / "recipes").rglob("*.toml"))
SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "examples").rglob("*.py"))]

QUANTITIES = (
    r"nats|bits|tokens|vectors|matrices|words|parameters|features|numbers|products|multiply-adds|steps|units|bytes"
    r"|characters|seconds|minutes|milliseconds|ms|bias|subwords|one|once"
)
UNITS = (
    r"token|step|gate|block|second|minute|character|byte|word|window|layer|epoch|side|run|row|line|column|update|unit"
    r"|verb|sentence|trial|utterance|context|position|segment|seed|file|piece|frame|process|time"
)

PHRASES = {
    rf"\b({QUANTITIES}) an? ({UNITS})\b": "per: nats per token, bias vectors per gate",
    r"\btold\b": "reported, distinguished, known",
    r"\btells? (\w+ ){0,2}apart\b": "distinguishes",
    r"\b(go|goes|going|went|gone) on\b": "continue, resume",
    r"\b(comes?|came|coming) to\b": "amounts to, equals, reaches",
    r"\bcomes? back\b": "returns, recurs, is decoded",
    r"\bwhat is given\b|\bis given what\b": "explicit options, the given text",
    r"\b(say|says|said) no\b": "refuses, rejects",
    r"\bsays? (so|how|what|which|where|whether|why)\b": "states, defines, describes, determines",
    r"\b(is|are) of (?!the order)(a|an|the|its|that|those)\b": "belongs to, is for",
    r"\bworth of\b|\bworth \w+ing\b|\bis worth\b|\bare worth\b": "measure, effect; leave out the judgement",
    r"\bof equals\b": "ties go to",
    r"\bnobody\b": "name the thing, or use the passive",
    r"\bwant(s|ed)\b": "needed, requested",
    r"\b(held|holds?) (it |them )?to (a|an|the|its|that|this)\b": "tested against, required to satisfy",
    r"\bheld against\b": "compared with",
    r"\b(be|is|are) had\b": "be obtained, be found",
    r"\banew\b": "again, afresh",
    r"\bby the clock\b": "of wall-clock time",
    r"\bas it was said\b|\bstays? as (it|they) (is|are|was|were|stands?)\b": "remains unchanged",
    r"\bof what\b.{1,40}\bsays\b": "put the subject first",
    r"\bthe book\b|\bbook of\b": "registry",
    r"\bmaterial\b": "adaptation source, text, pieces",
    r"\bslips?\b(?! of)": "errors",
    r"\blets? go\b": "removes, frees",
}
MODULES = {  # names of files that hide what they hold
    "book": "registry",
    "essence": "the canonical digest",
    "grammatical": "analysis/grammar",
    "material": "the adaptation source",
    "once": "the autograd guard",
    "small": "starting_small",
    "start": "warm_start",
    "transduce": "translate",
    "watchers": "progress",
}
FINDERS = {re.compile(pattern, re.IGNORECASE): better for pattern, better in PHRASES.items()}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
BETWEEN = re.compile(r"""["']\s*\n\s*[fr]*["']""")
CODE = re.compile(r"`[^`\n]+`|^ {4}.*$", re.MULTILINE)


def hits(text):
    """Forbidden phrases of a text as (phrase, better wording); a line break within a paragraph counts as a space."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
    return [
        (found[0], better)
        for paragraph in paragraphs
        for finder, better in FINDERS.items()
        for found in finder.finditer(paragraph)
    ]


def prose_of(path):
    """The texts of a file that a reader meets: prose of a page, notes of a recipe, strings and comments of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [CODE.sub("`code`", FENCE.sub("", text))]
    if path.suffix == ".py" and not hits(BETWEEN.sub("", text).replace("\\n", " ").replace("\n\n", "\n")):
        return []  # as it stands, without the signs between the parts of a string; most files need no parser
    comments = [token.string for token in _tokens(text) if token.type == tokenize.COMMENT]
    if path.suffix == ".toml":
        recipe = tomllib.loads(text)
        return [*comments, recipe.get("title", ""), recipe.get("notes", "")]
    strings = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    return [*comments, *(value for value in strings if isinstance(value, str))]


def _tokens(text):
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, IndentationError):  # TOML is close enough to Python for its comments
        return


def name(path):
    return str(path.relative_to(ROOT))


def report(path):
    return [f"{name(path)}: {phrase!r}; better: {better}" for text in prose_of(path) for phrase, better in hits(text)]


def test_pages_and_recipes_are_in_plain_english():
    found = [line for path in (*PAGES, *RECIPES) for line in report(path)]
    assert not found, "\n".join(found)


def test_docstrings_messages_and_comments_are_in_plain_english():
    found = [line for path in SOURCES for line in report(path)]
    assert not found, "\n".join(found)


def test_modules_have_plain_names():
    assert not [f"{name(path)}: {MODULES[path.stem]}" for path in SOURCES if path.stem in MODULES]


@pytest.mark.parametrize(
    "sentence",
    ["2.1 nats a token", "the user is told", "it goes on with\nthe run", "What is given stays.", "one bias a gate"],
)
def test_a_private_idiom_would_be_noticed(sentence):
    assert hits(sentence)


@pytest.mark.parametrize("sentence", ["2.1 nats per token", "the user is asked", "it resumes", "a window of a layer"])
def test_plain_sentences_pass(sentence):
    assert not hits(sentence)
