"""An Elman network learns by the extended Kalman filter, beside back-propagation through time and real-time learning.

    python examples/kalman.py            # two minutes on one thread
    python examples/kalman.py --tiny     # a few seconds

The task is the laboratory's adding task: two of the values of a sequence are marked, and their sum is due at its end;
always answering 1 has a mean square error of 0.167. The weights are the state of a system that does not change, and a
sequence is an observation of it (Williams 1992, Training recurrent networks using the extended Kalman filter, IJCNN;
several sequences at once: Puskorius & Feldkamp 1994, Neurocontrol of nonlinear dynamical systems with Kalman filter
trained recurrent networks, IEEE Trans. Neural Networks 5). With weights w, their covariance P, predictions y = f(w),
the derivatives H = dy / dw, which back-propagation through time computes, and targets t

    S = H P H' + R,    K = P H' S^-1,    w <- w + K (t - y),    P <- P - K H P + Q.

An update costs O(p^2) for p weights, and learns from P, as Newton's method does, how far to go in each direction. With
spans of 12 and 321 weights the filter took 125, 100 and 100 updates of 8 sequences, and back-propagation by Adam, at
the best of three rates, 1200, 1025 and 600 of 32 (median 0.68 and 2.27 s of processor time); real-time learning, at
one rate, took 1425, 1025 and 600 (13 s).
"""

import argparse
import statistics
import time

import numpy as np
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from elman.data.classic import classic_task
from elman.study.lab.networks import build_network
from elman.study.lab.trial import CHECKED, Trial, TrialResult, error_of, train_trial

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="short sequences, one seed, no real-time learning")
parser.add_argument("--span", type=int, default=12, help="steps of a sequence")
parser.add_argument("--size", type=int, default=16, help="units of the network")
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--budget", type=float, default=60.0, help="seconds of processor time of a training")
parser.add_argument("--prior", type=float, default=0.1, help="P = prior I at first")
parser.add_argument("--noise", type=float, default=0.05, help="R = noise I, of the observations")
parser.add_argument("--drift", type=float, default=1e-5, help="Q = drift I, so that P does not vanish")
options = parser.parse_args()
if options.tiny:
    options.span, options.seeds = 6, 1

torch.set_num_threads(1)
task = classic_task("adding")


def filtered(seed: int, columns: int = 8, check_every: int = 25) -> tuple[bool, int, float]:
    """Whether the error falls below the task's threshold, the updates, and the seconds of processor time."""
    torch.manual_seed(seed)
    model = build_network(task, "elman", options.size)  # the network of the laboratory's trial with this seed
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    draw = np.random.default_rng([seed, options.span])
    checked = task.measured(np.random.default_rng([seed, options.span, 1]), CHECKED, options.span)
    w = parameters_to_vector(parameters).detach()
    one = torch.eye(len(w))
    P, began, updates = options.prior * one, time.process_time(), 0
    while True:
        if updates % check_every == 0:
            error, seconds = error_of(model, task, checked), time.process_time() - began
            if error < task.solved or seconds > options.budget:
                return error < task.solved, updates, seconds
        batch = task.draw(draw, columns, options.span).batch
        trace, _ = model.trace(batch.inputs, model.begin(columns))
        y = model.output.choice.mean(trace.top)[batch.mask].flatten()
        rows = [torch.autograd.grad(each, parameters, retain_graph=True) for each in y]
        H = torch.stack([parameters_to_vector(row) for row in rows])
        with torch.no_grad():
            PH = P @ H.t()
            S = H @ PH + options.noise * torch.eye(len(y))
            K = torch.linalg.solve(S, PH, left=False)
            w = w + K @ (batch.targets[batch.mask].flatten() - y)
            P = P - K @ PH.t() + options.drift * one
            P = (P + P.t()) / 2
            vector_to_parameters(w, parameters)
        updates += 1


def of_trial(result: TrialResult) -> tuple[bool, int, float]:
    """The same of a trial of the laboratory."""
    return result.solved, result.steps, result.seconds


def trial(rule: str, seed: int, lr: float) -> Trial:
    """A trial by Adam, 32 sequences an update."""
    size = {"size": options.size, "budget": options.budget, "lr": lr}
    return Trial(task="adding", cell="elman", rule=rule, span=options.span, seed=seed, **size)


def bptt(seed: int) -> tuple[bool, int, float]:
    """Back-propagation through time by Adam at the best of three rates, the one that takes the fewest updates."""
    tried = [of_trial(train_trial(trial("bptt", seed, lr))[0]) for lr in (3e-3, 1e-2, 3e-2)]
    return min(tried, key=lambda found: (not found[0], found[1]))


def rtrl(seed: int) -> tuple[bool, int, float]:
    """The same gradients forward in time."""
    return of_trial(train_trial(trial("rtrl", seed, 1e-2))[0])


ways = {"extended Kalman filter": filtered, "back-propagation": bptt} | (
    {} if options.tiny else {"real-time learning": rtrl}
)
results = {}
for name, learn in ways.items():
    found = [learn(seed) for seed in range(options.seeds)]
    solved, updates, seconds = (list(column) for column in zip(*found, strict=True))
    results[name] = updates
    print(f"{name}: {sum(solved)} of {options.seeds} seeds below {task.solved:g}, updates {updates}", end=", ")
    print(
        f"median {statistics.median(updates):.0f} in {statistics.median(seconds):.2f} s of processor time", flush=True
    )
