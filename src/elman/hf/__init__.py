"""Runs on text as models of Hugging Face's transformers (pip install 'elman[hf]').

Importing this package registers the kind of model `elman`, so that `AutoModelForCausalLM.from_pretrained(FOLDER)` and
`AutoTokenizer.from_pretrained(FOLDER)` open what `elman export RUN --to hf --out FOLDER` wrote.
"""

from elman.errors import UserError

try:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
except ImportError:
    raise UserError("models of Hugging Face need the package transformers: pip install 'elman[hf]'") from None

from elman.hf.model import ElmanConfig, ElmanForCausalLM, ElmanTokenizer

__all__ = ["ElmanConfig", "ElmanForCausalLM", "ElmanTokenizer"]

AutoConfig.register("elman", ElmanConfig, exist_ok=True)
AutoModelForCausalLM.register(ElmanConfig, ElmanForCausalLM, exist_ok=True)
AutoTokenizer.register(ElmanConfig, slow_tokenizer_class=ElmanTokenizer, exist_ok=True)
