"""Recurrent learning: what its classic papers say of errors and rules."""

from elman import config
from elman.laboratory.trial import Trial
from elman.reproduce.claim import Arm, Axes, Claim, Computation, Measure
from elman.reproduce.comparison import Bound, lower, times
from elman.reproduce.computations.echo import Foreseen
from elman.reproduce.computations.learning_rules import RtrlAndBptt
from elman.reproduce.computations.long_lags import ErrorFlow, Learnt, Preserved

_CELLS: dict[str, config.Cell] = {"elman": config.Elman(), "lstm": config.LSTM(), "gru": config.GRU()}

RTRL_EQUALS_BPTT = Claim(
    name="rtrl-equals-bptt",
    sentence="RTRL finds the gradient of BPTT, at a cost that grows as n^4",
    source="Williams & Zipser 1989",
    arms=tuple(Arm(name, Computation(RtrlAndBptt(cell), 0.2)) for name, cell in _CELLS.items()),
    measure=Measure(
        "rtrl",
        {
            "difference": "relative distance of the gradients",
            "exponent": "exponent of n in the time of a step, 128 to 192 units",
            "theory": "the same of its multiply-adds",
        },
        curve=Axes("milliseconds", f"units: {', '.join(map(str, RtrlAndBptt.sizes))}", relative=False),
    ),
    comparisons=tuple(Bound("difference", name, 1e-10) for name in _CELLS),
    metric="difference",
    published={"elman": "the same gradient; O(n^4) a step"},
    notes="In float64, RTRL in windows of one step. The time grows as n^4 only where the product J P is all that"
    " counts; benchmarks/rtrl.py goes to larger networks.",
)

_FADING, _GROWING, _CAROUSEL = "elman, sigma_1 = 0.9", "relu, sigma_1 = 1.1", "lstm without forget gate"

VANISHING_GRADIENT = Claim(
    name="vanishing-gradient",
    sentence="errors vanish where sigma_1 of W is below 1 and may explode above; the error carousel keeps them",
    source="Bengio, Simard & Frasconi 1994; Pascanu et al. 2013, section 2.1; Hochreiter & Schmidhuber 1997",
    arms=(
        Arm(_FADING, Computation(ErrorFlow("elman", 0.9), 0.1)),
        Arm(_GROWING, Computation(ErrorFlow("irnn", 1.1), 0.1)),
        Arm(_CAROUSEL, Computation(ErrorFlow("lstm-1997"), 0.1)),
    ),
    measure=Measure(
        "vanishing",
        {"left": "error norm 50 steps before, over the last", "bound": "sigma_1^50"},
        curve=Axes("error", "steps back", relative=False),
    ),
    comparisons=(
        Bound("left", _FADING, "bound"),
        Bound("left", _GROWING, 1.0, exceeds=True),
        times("left", _CAROUSEL, _FADING, 10.0),
    ),
    metric="left",
    notes="32 untrained units read the delayed recall task over 50 steps.",
)

LSTM_LONG_LAG = Claim(
    name="lstm-long-lag",
    sentence="the LSTM learns to add over 100 steps; Elman's network does not",
    source="Hochreiter & Schmidhuber 1997, experiment 4",
    arms=tuple(
        Arm(cell, Computation(Learnt(Trial(task="adding", cell=cell, span=100, budget=60.0)), 1.2))
        for cell in ("elman", "lstm")
    ),
    measure=Measure(
        "adding",
        {"error": "mean square error (guessing: 0.167)", "steps": "learning steps"},
        curve=Axes("error", "checks, every 25 steps", relative=False),
    ),
    comparisons=(Bound("error", "lstm", 0.01), Bound("error", "elman", 0.01, exceeds=True)),
    metric="error",
    published={"lstm": "learnt at 100 steps, 74,000 sequences"},
    notes="64 units, Adam, 32 new sequences a step, a minute of processor time; the paper learns from one at a time.",
)

_PLAIN, _REGULARISED = "BPTT", "BPTT and the regulariser"

GRADIENT_REGULARISER = Claim(
    name="gradient-regulariser",
    sentence="Pascanu's regulariser keeps the norm of errors that go back in time",
    source="Pascanu, Mikolov & Bengio 2013, eq. 9 and section 4",
    arms=(
        Arm(_PLAIN, Computation(Preserved("bptt"), 0.1)),
        Arm(_REGULARISED, Computation(Preserved("bptt+0.1"), 0.3)),
    ),
    measure=Measure(
        "preserved",
        {"decades": "|log10| of the error norm 20 steps before over the last"},
        curve=Axes("error", "steps back", relative=False),
    ),
    comparisons=(lower("decades", _REGULARISED, _PLAIN),),
    metric="decades",
    notes="Elman's network of 32 units and small weights after 150 steps of learning to recall over 20. The paper's"
    " measure is the length at which tasks are still learnt.",
)

ECHO_STATE = Claim(
    name="echo-state",
    sentence="500 untrained units foresee Mackey-Glass 84 steps ahead to an NRMSE of 0.005 or less",
    source="Jaeger 2001; Jaeger & Haas 2004",
    arms=(Arm("reservoir", Computation(Foreseen(), 0.5)),),
    measure=Measure("echo", {"NRMSE": "mean NRMSE of 5 reservoirs", "worst": "the worst of them"}),
    comparisons=(Bound("NRMSE", "reservoir", 0.005),),
    metric="NRMSE",
    published={"reservoir": "10^-4.2, 1,000 units"},
    seeds=1,
    notes="tau = 17; the readout learns from 3,200 steps by ridge regression.",
)
