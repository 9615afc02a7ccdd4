"""The names of texts: what our figures of a claim were measured on, and what the published ones were."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elman.config.recipe import Recipe
from elman.errors import counted
from elman.study.claim import Claim, Computation, Scale

NAMES = {
    "shakespeare": "Shakespeare", "ptb": "Penn Treebank", "wikitext-2": "WikiText-2", "text8": "text8",
    "nottingham": "Nottingham", "one-billion-word": "One Billion Word",
}  # fmt: skip


def texts(claim: Claim, scale: Scale, recipes: Sequence[Recipe] = ()) -> tuple[str, str]:
    """The text of the published figures and ours, as far as a claim, its recipes or these `recipes` tell.

    The published text is what the claim says (`Claim.published_text`), or the text of its recipes at paper scale.
    """
    known = [arm.at(scale) for arm in claim.arms]
    own = recipes or [source.at(1) for source in known if source is not None and not isinstance(source, Computation)]
    paper = [arm.paper for arm in claim.arms if arm.paper is not None and not isinstance(arm.paper, Computation)]
    published = claim.published_text or _joined([NAMES.get(one.at(1).data.corpus or "", "") for one in paper])
    ours = _joined([described(recipe) for recipe in own])
    return published, claim.text or ours


def described(recipe: Recipe) -> str:
    """The text of a recipe, and how much of it is taken; empty where the recipe names none."""
    data: Any = recipe.data
    if getattr(data, "grammar", None) is not None:
        return "sentences of its grammar"
    if data.corpus is None:
        return ""
    name = NAMES.get(data.corpus, Path(data.corpus).name)
    token = "character" if getattr(data, "tokenisation", "") == "characters" else "token"
    parts = [(getattr(data, "train_tokens", None), token), (getattr(data, "max_vocabulary", None), "word")]
    return ", ".join([name, *(counted(value, what) for value, what in parts if value)])


def _joined(names: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(name for name in names if name))
