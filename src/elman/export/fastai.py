"""Language models of fastai (AWD-LSTM, ULMFiT) as runs: their weights under elman's names, their words, a recipe.

The layout belongs to fastai 1 and 2 (`0.encoder.weight`, `0.rnns.0.weight_hh_l0_raw`, `0.rnns.0.module.weight_ih_l0`,
`1.decoder.weight`), or to fastai 0.7, where the raw matrix is `0.rnns.0.module.weight_hh_l0_raw`. The raw matrix is the
one that DropConnect is applied to; its copy without `raw` may be one after dropout. Gates have torch's order, which is
elman's. No pickled object is loaded.
"""

import hashlib
import itertools
import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from safetensors.torch import load_file
from torch import Tensor

from elman import config
from elman.config.text import TextData
from elman.config.toml import decisive, dump_recipe
from elman.data.text.utf8 import read_text
from elman.data.text.vocabulary import EOS, TABLE, UNK, Vocabulary
from elman.errors import UserError, first_line
from elman.export.folder import new_folder
from elman.files import json_text, sha256_file, write_atomic
from elman.formats import parse_json
from elman.learning import checkpoint
from elman.learning.checkpoint import MODEL
from elman.network.build import build_model
from elman.network.cores.stack import Stack
from elman.network.encoders.lookup import Lookup
from elman.network.output.flat import Flat

MEANS = {"xxunk": UNK, "_unk_": UNK, "xxbos": EOS, "_bos_": EOS}
"""Symbols of fastai that elman has under another name: the unknown word, and what precedes every text."""

FILLER = "xxfake"
"""What fastai 2 fills a vocabulary up with, several times, so that its size is a multiple of eight."""

_ENCODER, _DECODER, _BIAS = "0.encoder.weight", "1.decoder.weight", "1.decoder.bias"
_COPIES = re.compile(
    r"0\.(encoder_dp\.emb|encoder_with_dropout\.embed)\.weight|0\.rnns\.\d+\.(module\.)?weight_hh_l0(_raw)?"
)
"""Tensors that repeat others; `_layer` reads a layer's."""

_PICKLED = (
    "it is damaged or holds Python objects, which are not loaded; in fastai, where you trust it, write tensors alone:"
    " torch.save(learn.model.state_dict(), 'weights.pth')"
)
_PICKLED_WORDS = (
    'a pickled list, which is not loaded; where you trust it, write it as JSON: python -c "import json, pickle;'
    " json.dump(list(pickle.load(open('itos.pkl', 'rb'))), open('itos.json', 'w'))\""
)


class Imported(msgspec.Struct, frozen=True):
    """What was written: the run folder, the number of words, the width of the vectors, and of each layer."""

    folder: str
    words: int
    width: int
    sizes: list[int]
    tied: bool
    bias: bool
    parameters: int


def import_fastai(
    weights: Path, words: Path, out: Path, *, tokenisation: Literal["words", "raw"] = "words", lowercase: bool = False
) -> Imported:
    """Write a run folder that holds the weights of a fastai language model, to be used, or trained on.

    `words` lists the vocabulary in its order: a JSON list, or a text with a word per line. `tokenisation` is how texts
    are read: as tokens of fastai between white space, or ordinary text by elman's rule. Dropout rates of the recipe are
    the defaults of fastai.

    Raises UserError where a file cannot be read without running code, tensors are missing, unknown, of shapes that do
    not fit or not finite, the number of words is another, or the folder is not empty.
    """
    tensors = read_weights(weights)
    listed = read_words(words)
    network, found = _network(tensors, str(weights))
    if len(listed) != len(found["encoder.weight"]):
        raise UserError(
            f"{words}: {len(listed):,} words, but {weights} has vectors of {len(found['encoder.weight']):,}; give the"
            " vocabulary that the model was trained with"
        )
    vocabulary = Vocabulary(tuple(_named(listed, str(words))), (0,) * len(listed))
    recipe = config.Recipe(
        title=f"{weights.stem} (fastai)",
        citation="Howard & Ruder 2018, Universal Language Model Fine-tuning for Text Classification, ACL",
        data=TextData(tokenisation=tokenisation, lowercase=lowercase),
        model=network,
        training=config.Training(epochs=1, batch_size=32, optimiser=config.Adam(lr=1e-3), clip=0.25),
    )
    model = build_model(network, len(vocabulary), vocabulary.counts, vocabulary.words)
    _require_fit(checkpoint.model_tensors(model), found, str(weights))
    source = f"the training text of {weights.name}"
    facts: dict[str, Any] = {"vocabulary": vocabulary.digest, "step": 0, "epoch": 0.0, "valid_nll": None}
    with new_folder(out) as folder:
        vocabulary.save(folder / TABLE)
        origin = {"source": source, "digest": hashlib.sha256(source.encode()).hexdigest(), "splits": {}}
        origin |= {"imported": {"file": weights.name, "sha256": sha256_file(weights)}}
        write_atomic(folder / "data.json", json_text(origin, indent=2) + "\n")
        checkpoint.save(folder / MODEL, found, {**facts, "recipe": decisive(recipe)})
        write_atomic(folder / "recipe.toml", dump_recipe(recipe))
    assert isinstance(network.core, Stack)
    tied, sizes = "output.choice.weight" not in found, list(network.core.sizes)
    count, width = sum(one.numel() for one in found.values()), found["encoder.weight"].shape[1]
    return Imported(str(out), len(vocabulary), width, sizes, tied, "output.choice.bias" in found, count)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by their names: safetensors, or what torch.save wrote of tensors alone."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the weights, such as weights.pth or model.safetensors")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        read = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UserError(f"{path}: {_PICKLED}") from None
    except Exception as error:  # torch raises errors of many kinds where bytes are no pickle, or damaged
        raise UserError(f"{path}: not a file of weights ({first_line(error)})") from None
    inner = read.get("model", read) if isinstance(read, Mapping) else read  # Learner.save stores the optimiser too
    if not isinstance(inner, Mapping) or not all(isinstance(one, Tensor) for one in inner.values()):
        raise UserError(f"{path}: it holds no table of tensors by their names; {_PICKLED.partition('; ')[2]}")
    return {str(name): tensor for name, tensor in inner.items()}


def read_words(path: Path) -> list[str]:
    """The words of a file in their order; raises UserError where it is a pickled list, or none at all."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the vocabulary, a JSON list or a word per line")
    with path.open("rb") as file:
        beginning = file.read(2)
    if path.suffix in (".pkl", ".pickle") or (beginning[:1] == b"\x80" and beginning[1:] <= b"\x05"):
        raise UserError(f"{path}: {_PICKLED_WORDS}")
    if path.suffix != ".json":
        return read_text(path).removesuffix("\n").split("\n")
    try:
        return msgspec.convert(parse_json(path.read_bytes()), list[str])
    except (ValueError, msgspec.ValidationError) as error:
        raise UserError(f"{path}: not a JSON list of words ({first_line(error)})") from None


def _named(words: Sequence[str], path: str) -> list[str]:
    """The words under elman's names, fillers numbered; raises UserError where another word appears twice."""
    known, named = set(words), list[str]()
    fillers = itertools.count(2)
    seen: set[str] = set()
    for number, word in enumerate(words, start=1):
        mine = MEANS[word] if word in MEANS and MEANS[word] not in known else word
        if mine in seen and word == FILLER:
            mine = f"{FILLER}-{next(fillers)}"
        if not mine or mine in seen:
            raise UserError(
                f"{path}: word {number}, {word!r}, {'appears twice' if mine else 'is empty'}; each needs one"
            )
        seen.add(mine)
        named.append(mine)
    return named


def _network(tensors: Mapping[str, Tensor], path: str) -> tuple[config.Model, dict[str, Tensor]]:
    if "encoder.weight" in tensors and _ENCODER not in tensors:
        raise UserError(f"{path}: an encoder alone, without the layer that predicts words; save the whole model")
    for name in (_ENCODER, _DECODER):
        if name not in tensors:
            raise UserError(f"{path}: {name} is missing; a language model of fastai has it, a classifier does not")
    numbers = sorted({int(layer[1]) for name in tensors if (layer := re.match(r"0\.rnns\.(\d+)\.", name))})
    if numbers != list(range(len(numbers))) or not numbers:
        raise UserError(f"{path}: the layers 0.rnns.N are numbered {numbers or 'nowhere'}; 0, 1, ... is expected")
    found, used = {"encoder.weight": tensors[_ENCODER]}, {_ENCODER, _DECODER, _BIAS}
    for number in numbers:
        for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            name = _layer(tensors, number, part, path)
            used.add(name)
            found[f"core.layers.{number}.{part}"] = tensors[name]
    if other := sorted(name for name in tensors.keys() - used if not _COPIES.fullmatch(name)):
        raise UserError(f"{path}: {other[0]} is not part of an AWD-LSTM of one direction; other networks are not read")
    if not torch.equal(tensors[_DECODER], tensors[_ENCODER]):
        found["output.choice.weight"] = tensors[_DECODER]
    if _BIAS in tensors:
        found["output.choice.bias"] = tensors[_BIAS]
    found = {name: tensor.detach().float().contiguous() for name, tensor in found.items()}
    hidden = [found[f"core.layers.{number}.weight_hh"] for number in numbers]
    if any(one.ndim != 2 for one in (found["encoder.weight"], *hidden)):
        raise UserError(f"{path}: the vectors of words and the recurrent weights should be matrices")
    return _record([one.shape[1] for one in hidden], found), found


def _require_fit(own: Mapping[str, Tensor], found: Mapping[str, Tensor], path: str) -> None:
    """Raise UserError where tensors have other shapes than the first ones imply, or numbers that are not finite."""
    for name, tensor in own.items():
        if tensor.shape != found[name].shape:
            raise UserError(
                f"{path}: {name} (as elman calls it) is {tuple(found[name].shape)}, and the other tensors imply"
                f" {tuple(tensor.shape)}; give the weights of one whole network"
            )
        if not found[name].isfinite().all():
            raise UserError(f"{path}: {name} (as elman calls it) has values that are not finite")


def _record(sizes: Sequence[int], found: Mapping[str, Tensor]) -> config.Model:
    choice = Flat(tied="output.choice.weight" not in found, bias="output.choice.bias" in found)
    return config.Model(
        encoder=Lookup(size=found["encoder.weight"].shape[1], dropout=0.25, word_dropout=0.02),
        core=Stack(sizes=tuple(sizes), weight_drop=0.2, between_dropout=0.15, output_dropout=0.1),
        output=config.Output(choice=choice),
    )


def _layer(tensors: Mapping[str, Tensor], number: int, part: str, path: str) -> str:
    """The name of a tensor of a layer: the raw matrix where there is one."""
    ends = (f"{part}_l0_raw", f"{part}_l0") if part == "weight_hh" else (f"{part}_l0",)
    names = [f"0.rnns.{number}.{inner}{end}" for end in ends for inner in ("", "module.")]
    for name in names:
        if name in tensors:
            return name
    layers = [name for name in tensors if name.startswith(f"0.rnns.{number}.layers.")]
    what = "a quasi-recurrent layer, which elman does not have" if layers else f"{names[-1]} is missing"
    raise UserError(f"{path}: layer {number}: {what}; LSTM layers are read")
