"""Pairs of a source and a target as data: where they are from, how they become symbols, how output is evaluated."""

from typing import Annotated, Literal

from msgspec import Meta

from elman.config.data import Data
from elman.config.recipe import Recipe
from elman.config.record import TOKENS, Positive, Record
from elman.config.text import SubwordOptions, TextOptions


class PairOptions(Record, frozen=True, kw_only=True):
    """The rules by which pairs of a source and a target become symbols and vocabularies.

    Attributes:
        form: `tsv`: lines `source TAB target`; `parallel`: two files, line by line, named by `languages`; `trees`:
            bracketed trees, whose words are the source and whose linear form is the target; `pronunciations`: lines of
            a word and its phonemes, as of cmudict, whose letters are the source.
        languages: endings of the two parallel files, the source's first, such as `["ja", "en"]`.
        split: which pairs of a single file are held out: those whose source has the smallest SHA-256 (`hash`), or the
            `last`. Folders that bring their own splits are taken as they are.
        valid, test: how many pairs of a single file are held out for each split.
        train_pairs: how many pairs of the training split are used, the first ones; all where it has fewer.
        skip_empty: leave out pairs with an empty side, and count them, instead of refusing the file.
        tokenisation: as for a text (`elman.config.text.TextOptions`); always `words` for trees.
        subwords: how subwords are found in the training pairs: of each side by itself, or of both where they share one
            vocabulary (Sennrich et al. 2016, section 3.2).
        lowercase: fold capitals; of a tree's words, never of its labels.
        max_source, max_target: longer training pairs are left out (symbols, without the end symbol).
        long_held_out: longer held-out sources are `cut`, or held-out pairs beyond a limit left out too (`omit`).
        min_count: symbols seen less often in training become `<unk>`.
        max_vocabulary: greatest size of each vocabulary.
        reverse_source: the source is read from its last symbol to its first (Sutskever et al. 2014, section 3.3).
        tags: parts of speech in linear trees: all `XX` (Vinyals et al. 2015, section 2.2), or `keep`.
        functions: keep functions and traces of labels (`NP-SBJ`), else `NP`.
        measures: how output is evaluated: ROUGE (`headlines`), BLEU and chrF (`translation`), or the edit distance
            (`sequences`); trees by brackets.
        rouge_words: what a word is for ROUGE (`elman.kinds.pairs.measures.rouge`).
        bleu_tokens: what BLEU counts (`elman.kinds.pairs.measures.bleu`); `none`: what stands between spaces.
    """

    form: Literal["tsv", "parallel", "trees", "pronunciations"] = "tsv"
    languages: tuple[str, str] | None = None
    split: Literal["hash", "last"] = "hash"
    valid: Positive = 2000
    test: Positive = 2000
    train_pairs: Positive | None = None
    skip_empty: bool = False
    tokenisation: Literal["words", "raw", "characters", "subwords"] = "words"
    subwords: SubwordOptions = SubwordOptions()
    lowercase: bool = False
    max_source: Positive = 100
    max_target: Positive = 100
    long_held_out: Literal["cut", "omit"] = "cut"
    min_count: Positive = 1
    max_vocabulary: Annotated[int, Meta(ge=4)] | None = None
    shared_vocabulary: bool = False
    reverse_source: bool = False
    tags: Literal["XX", "keep"] = "XX"
    functions: bool = False
    measures: Literal["headlines", "translation", "sequences"] = "translation"
    rouge_words: Literal["english", "spaces"] = "english"
    bleu_tokens: Literal["none", "13a", "char", "zh", "intl"] = "none"

    def __post_init__(self) -> None:
        if self.form == "parallel" and self.languages is None:
            raise ValueError('form = "parallel" needs the endings of the two files, such as languages = ["ja", "en"]')
        if self.form in ("trees", "pronunciations") and self.tokenisation != "words":
            raise ValueError(f'tokenisation = "{self.tokenisation}"; {self.form} come in words: leave it at "words"')
        if self.tokenisation == "subwords" and (self.min_count > 1 or self.max_vocabulary is not None):
            raise ValueError(
                'min_count and max_vocabulary with tokenisation = "subwords": its vocabulary spells every text and is'
                " never cut; leave both out, and set subwords.size"
            )

    @property
    def source_text(self) -> TextOptions:
        """The rules of this record for the source text."""
        tokenisation = "characters" if self.form == "pronunciations" else self.tokenisation
        return TextOptions(tokenisation=tokenisation, lowercase=self.lowercase, eos="none")

    @property
    def target_text(self) -> TextOptions:
        """The same rules for the text of a target; the labels of trees keep their capitals."""
        return TextOptions(eos="none") if self.form in ("trees", "pronunciations") else self.source_text


class PairEvaluation(Record, frozen=True, kw_only=True):
    """How the output of a model is searched for when it is evaluated; a beam of 1 is greedy.

    `copy_unknown`: write the symbol of the source with the greatest attention in place of `<unk>`. `constrained`:
    search among trees over the words of the source (`kinds/pairs/constraint.py`); other targets are never constrained.
    """

    beam: Positive = 5
    copy_unknown: bool = False
    constrained: bool = True


class PairData(PairOptions, Data, frozen=True, kw_only=True, tag_field="kind", tag="pairs"):
    """Pairs of a source and a target; `corpus` is a known corpus, a file or a folder, unless --data names another."""

    encoders = ("lookup", "characters")
    command = "translate --source FILE"
    proposal = "elman.kinds.pairs.proposal"
    needs = "lines of a source, a tab and a target, parallel files or trees"
    task = "elman.kinds.pairs.task:PairTask"
    reporting = TOKENS
    has_source = True

    corpus: str | None = None
    digest: str | None = None
    evaluation: PairEvaluation = PairEvaluation()

    def check(self, recipe: Recipe) -> None:
        """Raise ValueError where the model reads no source, or has no attention to copy by."""
        if recipe.model.source is None:
            raise ValueError('data.kind = "pairs" needs a model that reads a source; add the table model.source')
        if self.evaluation.copy_unknown and not recipe.model.attends:
            raise ValueError(
                "data.evaluation.copy_unknown writes the source symbol with the largest attention weight, but this"
                ' decoder has no attention; set it to false, or model.core.kind = "attentive"'
            )
