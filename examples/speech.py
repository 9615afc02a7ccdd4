"""Sums spoken aloud: a bidirectional LSTM by CTC and as a transducer, with a language model that has read the tables.

    python examples/speech.py             # needs the synthesiser espeak-ng
    python examples/speech.py --tiny      # few sums and a small network, in seconds
    elman rescore speech/lm speech/valid-CTC.tsv --references speech/valid.txt --tune    # the lists that it has written

After Graves, Mohamed & Hinton 2013, Speech recognition with deep recurrent neural networks, ICASSP: the transducer
begins from the network that CTC has trained. In 2 minutes 7.9 % of the words of new voices are wrong by CTC and by the
transducer, with the language model 4.3 and 5.2 % (means of three seeds).
"""

import argparse
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import elman
from elman import nn as enn
from elman.evaluation.measures import edit_distance

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="few sums and a small network")
parser.add_argument("--out", type=Path, default=Path("speech"))
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
COUNT, HELD, EPOCHS, H, B, LR = (100, 8, 16, 32, 5, 1e-2) if options.tiny else (600, 80, 12, 96, 20, 5e-3)
torch.manual_seed(options.seed)
draw = random.Random(options.seed)
out = options.out
out.mkdir(parents=True, exist_ok=True)

# The sums: a + b, a x b and (a + b) - a with a and b up to 12, digit by digit.

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
WORDS = ["<blank>", "plus", "times", "minus", "is", *DIGITS]


def drawn_sum() -> list[str]:
    """A sum in words."""
    a, b, sign = draw.randint(1, 12), draw.randint(1, 12), draw.choice("+*-")
    line = {"+": f"{a}+{b}={a + b}", "*": f"{a}*{b}={a * b}", "-": f"{a + b}-{a}={b}"}[sign]
    return [WORDS[1 + "+*-=0123456789".index(sign)] for sign in line]


# The sounds: voices in an accent and a manner, other voices in each split, as energies in bands of frames.

VOICES = {"train": ["m1", "m2", "m3", "m4", "m5", "f1", "f2", "f3"], "valid": ["m6", "m7"], "test": ["m8", "f4", "f5"]}
RATE, BANDS, NOISE = 22050, 32, 0.7  # white noise, in standard deviations of the speech


def spoken(words: list[str], split: str) -> np.ndarray:
    """Samples of words."""
    voice = draw.choice(["en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland"]) + "+" + draw.choice(VOICES[split])
    command = ["espeak-ng", "-v", voice, "-s", f"{draw.randint(140, 240)}", "-p", f"{draw.randint(30, 70)}", "--stdout"]
    sound = subprocess.run([*command, " ".join(words)], capture_output=True, check=True).stdout
    return np.frombuffer(sound[44:], np.int16).astype(np.float32)


def log_mel(samples: np.ndarray) -> Tensor:
    """Log energies in triangular bands of the mel scale, three frames of 10 ms side by side [T, 3 BANDS]."""
    sound = torch.from_numpy(samples / samples.std()) + NOISE * torch.randn(len(samples))
    power = torch.stft(sound, 512, 220, window=torch.hann_window(512), return_complex=True).abs().square()
    mel = 2595 * torch.log10(1 + torch.linspace(0, RATE / 2, 257) / 700)
    centres = torch.linspace(0, mel[-1], BANDS + 2)[1:-1, None]
    bands = ((1 - (mel - centres).abs() / centres[0]).clamp(min=0) @ power + 1e-3).log().t()
    return ((bands - bands.mean(0)) / bands.std(0))[: len(bands) // 3 * 3].reshape(-1, 3 * BANDS)


texts = {split: [drawn_sum() for _ in range(COUNT if split == "train" else HELD)] for split in VOICES}
sounds = {split: [log_mel(spoken(words, split)) for words in lines] for split, lines in texts.items()}
labels = {split: [torch.tensor([*map(WORDS.index, words)]) for words in lines] for split, lines in texts.items()}

# The network: two layers in both directions over the frames of one sound, or of sounds side by side.

core = enn.LSTM(3 * BANDS, H, num_layers=2, bidirectional=True, dropout=0.2)
ctc, transducer = torch.nn.Linear(2 * H, len(WORDS)), enn.Transducer(2 * H, len(WORDS), H, enn.LSTM(H, H))
model = torch.nn.ModuleList([core, ctc, transducer])


def ctc_nll(states: Tensor, *others: Tensor) -> Tensor:
    """The loss of CTC of states [T, B, 2 H], labels [B, U] and the numbers of both."""
    return torch.nn.functional.ctc_loss(ctc(states).log_softmax(-1), *others)


def train(loss: Callable[..., Tensor], epochs: int) -> None:
    """Train by Adam, B sounds an update."""
    model.train()
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LR, total_steps=epochs * len(range(0, COUNT, B)))
    for rows in (rows for _ in range(epochs) for rows in torch.randperm(COUNT).split(B)):
        chosen, targets = ([of["train"][row] for row in rows] for of in (sounds, labels))
        lengths, sizes = (torch.tensor([*map(len, each)]) for each in (chosen, targets))
        states, _ = core(pack_padded_sequence(pad_sequence(chosen), lengths, enforce_sorted=False))
        value = loss(pad_packed_sequence(states)[0], pad_sequence(targets, True, 1), lengths, sizes)
        optimiser.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()


# The language model: a run of elman on other sums. Its log-probabilities are added in the beams.

(out / "sums.txt").write_text("".join(" ".join(drawn_sum()) + "\n" for _ in range(8 * COUNT)))
settings = ["data.min_count=1", f"training.epochs={4 if options.tiny else 12}", "model.core.sizes=[96,64]"]
run = elman.train("recipes/shakespeare/demo.toml", out / "lm", data=out / "sums.txt", settings=settings).run
ways = {"alone": None, "with the language model": run.prior(WORDS, weight=0.6, bonus=1.0)}
rates = {}


@torch.no_grad()
def measure(name: str, beam: Callable[..., list[enn.Hypothesis]]) -> None:
    """Print the rate of wrong labels of beams, and write their lists without the language model."""
    for split, way in (("valid", "alone"), ("test", "alone"), ("test", "with the language model")):
        found = [(n, one) for n, sound in enumerate(sounds[split]) for one in beam(core(sound)[0], prior=ways[way])]
        rows = [(n, one.log_prob, " ".join(WORDS[k] for k in one.labels)) for n, one in found]
        best = {n: said.split() for n, _, said in reversed(rows)}
        wrong = sum(edit_distance(best[n], true) for n, true in enumerate(texts[split]))
        rates[name, way] = wrong / sum(map(len, texts[split]))
        print(f"{name} {way}: {100 * rates[name, way]:.1f} % of the labels of the {split} voices are wrong", flush=True)
        if way == "alone":
            (out / f"{split}-{name}.tsv").write_text("".join(f"{n}\t{p}\t{said}\n" for n, p, said in rows))
        (out / f"{split}.txt").write_text("".join(f"{n}\t{' '.join(true)}\n" for n, true in enumerate(texts[split])))


train(ctc_nll, EPOCHS)
measure("CTC", lambda states, prior: enn.ctc_beam(ctc(states).log_softmax(-1), prior=prior))
sound, target = sounds["test"][0], labels["test"][0]
spikes = ctc(core(sound)[0]).softmax(-1).detach()
train(transducer.nll, EPOCHS // 2)
measure("transducer", transducer.beam)

# A picture: the sound, the labels by CTC, and how likely the transducer says the label of a row next.
lattice = transducer(core(sound.unsqueeze(1))[0], target.unsqueeze(0)).exp().detach()
figure, (above, middle, below) = plt.subplots(3, figsize=(9, 8), layout="constrained")
above.imshow(sound.reshape(-1, BANDS).t(), aspect="auto", origin="lower")
middle.plot(spikes[:, target.unique()], label=[WORDS[place] for place in target.unique()])
middle.legend()
below.imshow(lattice[0, :, range(len(target)), target].t(), aspect="auto")
below.set_yticks(range(len(target)), texts["test"][0])
figure.savefig(out / "speech.png")
