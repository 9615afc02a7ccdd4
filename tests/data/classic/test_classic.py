"""Classic tasks, by brute force: every answer is found again from the inputs alone."""

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from elman.data.classic import TASKS, classic_task
from elman.data.classic.grammars import LETTERS, embedded_reber, reber
from elman.data.classic.mackey_glass import foresee, mackey_glass
from elman.data.classic.memory import PLANS, adding, copying, movement, plan_sequences, recall, temporal_xor
from elman.errors import UserError
from support.pairwise import every_value


def rng(seed=0):
    return np.random.default_rng(seed)


def strings(sample, alphabet):
    """Each column as it was before it was cut into inputs and targets."""
    inputs, targets, mask, *_ = sample.batch
    for column in range(inputs.shape[1]):
        length = int(mask[:, column].sum())
        ids = [*inputs[:length, column].tolist(), targets[length - 1, column].item()]
        yield "".join(alphabet[index] for index in ids)


@every_value(name=TASKS, span=[4, 9])
def test_every_classic_task_draws_what_it_declares(name, span):
    task = classic_task(name)
    batch, allowed = task.draw(rng(), 7, span)
    again, _ = task.draw(rng(), 7, span)
    other, _ = task.draw(rng(1), 7, span)
    assert torch.equal(batch.inputs, again.inputs)
    assert batch.inputs.shape != other.inputs.shape or not torch.equal(batch.inputs, other.inputs)
    assert batch.mask.any(0).all()
    if task.kind != "symbols":
        assert allowed is None
        assert batch.inputs.shape[2:] == (task.inputs,)
        assert batch.targets.shape[2:] == (task.outputs,)
        return
    assert max(batch.inputs.max(), batch.targets.max()) < task.inputs == allowed.shape[-1]
    judged = allowed.any(-1)
    assert judged.any()
    assert (judged <= batch.mask).all(), "what is judged is learnt"
    assert allowed.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1)[judged].all(), "the truth is right"


@pytest.mark.parametrize("span", [2, 3, 16, 51])
def test_adding(span):
    batch, _ = adding(rng(), 50, span)
    values, marks = batch.inputs.unbind(-1)
    assert (marks.sum(0) == 2).all()
    assert (marks[: span // 2].sum(0) == 1).all()
    assert torch.allclose((values * marks).sum(0), batch.targets[-1, :, 0])
    assert batch.mask.sum() == batch.mask[-1].sum() == 50


def test_the_guess_without_memory():
    batch, _ = adding(rng(), 20_000, 4)
    assert (batch.targets[-1] - 1).square().mean().item() == pytest.approx(1 / 6, rel=0.03)


@pytest.mark.parametrize("span", [1, 8])
def test_copying(span):
    batch, allowed = copying(rng(), 6, span, items=3, letters=4)
    assert len(batch.inputs) == span + 6
    for read, said in zip(batch.inputs.t().tolist(), batch.targets.t().tolist(), strict=True):
        assert read == [*read[:3], *[4] * (span - 1), 5, 4, 4, 4]
        assert said == [4] * (span + 3) + read[:3]
    assert allowed.any(-1).sum() == 3 * 6


def test_recall():
    batch, allowed = recall(rng(), 30, 5)
    assert batch.inputs.shape == (7, 30)
    assert torch.equal(batch.targets[-1], batch.inputs[0])
    assert (batch.inputs[-1] == 8).all()
    assert batch.inputs[1:-1].min() >= 4 > batch.inputs[0].max()
    assert allowed[:-1].sum() == 0


def test_xor():
    batch, allowed = temporal_xor(rng(), 5, 20)
    judged = allowed.any(-1)
    for t, column in ((t, c) for t in range(1, 60) for c in range(5)):
        if judged[t, column]:
            assert batch.targets[t, column] == batch.inputs[t, column] ^ batch.inputs[t - 1, column]
    assert judged.sum() == 20 * 5
    assert torch.equal(batch.inputs[1:], batch.targets[:-1])
    after, same = rng(), rng()
    temporal_xor(after, 5, 20)
    same.integers(0, 2, (21, 3, 5))
    assert after.random() == same.random(), "what is drawn next does not change"


WHOLE = r"B(?:TS*X(?:S|XT*V(?:PXT*V)*(?:PS|V))|PT*V(?:PXT*V)*(?:PS|V))E"


def test_reber_strings_are_those_of_the_grammar():
    for text in strings(reber(rng(), 40, 12), LETTERS):
        assert re.fullmatch(f"(?:{WHOLE})+", text), text
        assert len(text) >= 12


def test_what_may_follow_is_all_that_ever_does():
    """Two letters tell the state of Reber's automaton; every allowed letter is seen, and no other."""
    seen, allowed_after = {}, {}
    for text, column in zip(strings(sample := reber(rng(), 60, 60), LETTERS), range(60), strict=True):
        for place, (first, second) in enumerate(pairwise(text[:-1]), start=1):
            seen.setdefault((first, second), set()).add(text[place + 1])
            letters = {LETTERS[index] for index in sample.allowed[place, column].nonzero().flatten().tolist()}
            allowed_after.setdefault((first, second), set()).update(letters)
    assert seen == allowed_after


@pytest.mark.parametrize("span", [1, 30])
def test_embedded_reber(span):
    sample = embedded_reber(rng(), 40, span)
    for text in strings(sample, LETTERS):
        assert re.fullmatch(f"B([TP])(?:{WHOLE})+\\1E", text), text
        assert len(text) >= span + 4
    assert sample.allowed.any(-1).sum() == 40


@pytest.mark.parametrize(("name", "letters"), [("anbn", "ab"), ("anbncn", "abc")])
def test_counting(name, letters):
    sample = TASKS[name].draw(rng(), 50, 6)
    judged = sample.allowed.any(-1)
    for column, text in enumerate(strings(sample, letters + "[]")):
        n = text.count("a")
        assert text == "[" + "".join(letter * n for letter in letters) + "]"
        assert judged[:, column].nonzero().flatten().tolist() == list(range(n + 1, len(letters) * n + 1))
    assert {text.count("a") for text in strings(sample, letters + "[]")} == set(range(1, 7))


def test_generation_follows_the_plan_of_its_input():
    for name, first in (("generation", False), ("forced-generation", True)):
        batch, _ = TASKS[name].draw(rng(), 30, 9)
        plan = batch.inputs[0] - 4
        assert np.array_equal(batch.targets.numpy(), plan_sequences(9)[:, plan.numpy()])
        assert torch.equal(batch.inputs[1:], batch.targets[:-1] if first else batch.inputs[:1].expand(8, -1))
    assert plan_sequences(9).shape == (9, PLANS)


def test_mackey_glass_obeys_its_equation():
    """Four times finer steps give the same series for a while, and the scale is the known one."""
    coarse, fine = (mackey_glass(60, settle=0, per_step=steps) for steps in (10, 40))
    assert np.abs(coarse - fine).max() < 1e-4
    assert 1.1 <= coarse[0] <= 1.3
    series = mackey_glass(3000)
    assert 0.2 < series.min() < 0.5
    assert 1.2 < series.max() < 1.45
    assert 0.2 < series.std() < 0.26


def test_mackey_glass_against_another_integrator():
    """One delay long the equation is an ordinary one, whose past is known."""
    series = mackey_glass(40, settle=0, per_step=20)
    fine = mackey_glass(40 * 20, settle=0, per_step=20)[:40]
    assert np.allclose(series, fine)
    whole = mackey_glass(60, per_step=20, settle=100)
    # The sampled series, smooth by now, stands for the past of the next 17 units.
    past = np.polynomial.Chebyshev.fit(np.arange(18), whole[:18], 14)
    found = solve_ivp(
        lambda t, x: 0.2 * past(t) / (1 + past(t) ** 10) - 0.1 * x, (0, 17), [whole[17]], rtol=1e-9, t_eval=range(1, 18)
    )
    assert np.abs(found.y[0] - whole[18:35]).max() < 1e-3


def test_mackey_glass_interpolates_the_delayed_value_by_a_cubic():
    """Runge-Kutta again, with the delayed value at half a step on the polynomial through its four neighbours."""
    per_step, lag, h = 10, 170, 0.1
    x = [mackey_glass(1, settle=0)[0]] * (lag + 1)

    def slope(value, delayed):
        return 0.2 * delayed / (1 + delayed**10) - 0.1 * value

    for now in range(lag, lag + 60 * per_step):
        first, last = x[now - lag], x[now - lag + 1]
        neighbours = [x[max(0, now - lag + step)] for step in (-1, 0, 1, 2)]
        middle = np.polynomial.polynomial.polyval(0.5, np.polynomial.polynomial.polyfit([-1, 0, 1, 2], neighbours, 3))
        k1 = slope(x[now], first)
        k2 = slope(x[now] + h / 2 * k1, middle)
        k3 = slope(x[now] + h / 2 * k2, middle)
        k4 = slope(x[now] + h * k3, last)
        x.append(x[now] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    np.testing.assert_allclose(mackey_glass(60, settle=0), x[lag::per_step][:60], rtol=0, atol=1e-9)


def test_foresee_targets_are_the_inputs_of_later_steps():
    batch, _ = foresee(rng(), 4, 6)
    assert torch.equal(batch.targets[:-6], batch.inputs[6:])


def test_an_unknown_classic_task_is_refused():
    with pytest.raises(UserError, match="there is no task sorting; `elman lab tasks` shows them: xor, adding"):
        classic_task("sorting")


def test_movement_goes_round_at_the_speed_that_is_read():
    batch, _ = movement(rng(), 40, 30)
    speeds = np.array([-3, -2, -1, 1, 2, 3])[batch.inputs[0].numpy() - 12]
    assert set(speeds.tolist()) == {-3, -2, -1, 1, 2, 3}
    assert (batch.inputs == batch.inputs[0]).all()
    places = np.vstack([np.zeros(40, dtype=int), batch.targets.numpy()])
    assert ((np.diff(places, axis=0) - speeds) % 12 == 0).all()
    assert places.min() >= 0
    assert places.max() < 12


def test_foresee_reads_the_series_less_one():
    """The series stays between 0.2 and 1.4, and is 0.93 on average."""
    batch, _ = foresee(rng(), 40, 6)
    assert batch.inputs.min() > -0.8
    assert batch.inputs.max() < 0.4
    assert batch.inputs.mean().item() == pytest.approx(-0.07, abs=0.03)
    assert not batch.mask[:100].any()
    assert batch.mask[100:].all()


DECLARED = {
    "xor": ("symbols", 2, 1, 0.01, 1, 8, 100_000),
    "adding": ("values", 2, 1, 0.01, 2, 16, 100_000),
    "copying": ("symbols", 6, 1, 0.01, 1, 8, 100_000),
    "copying-10": ("symbols", 10, 1, 0.01, 1, 8, 100_000),
    "recall": ("symbols", 9, 1, 0.01, 1, 8, 100_000),
    "reber": ("symbols", 7, 1, 0.001, 1, 16, 100_000),
    "embedded-reber": ("symbols", 7, 1, 0.01, 1, 8, 100_000),
    "anbn": ("symbols", 4, 1, 0.01, 1, 4, 100_000),
    "anbncn": ("symbols", 5, 1, 0.01, 1, 4, 100_000),
    "mackey-glass": ("values", 1, 1, 0.0005, 1, 1, 19_799),
    "generation": ("symbols", 12, 1, 0.01, 1, 8, 100_000),
    "forced-generation": ("symbols", 12, 1, 0.01, 1, 8, 100_000),
    "movement": ("symbols", 18, 1, 0.01, 1, 8, 100_000),
    "copy": ("bits", 9, 8, 0.01, 1, 8, 10_000),
    "repeat-copy": ("bits", 10, 9, 0.01, 1, 4, 300),
    "associative-recall": ("bits", 8, 6, 0.01, 2, 3, 10_000),
    "priority-sort": ("bits", 10, 8, 0.01, 1, 5, 10_000),
    "parity": ("symbols", 2, 1, 0.01, 1, 8, 100_000),
    "s5": ("symbols", 120, 1, 0.01, 1, 4, 100_000),
    "s5-swaps": ("symbols", 120, 1, 0.01, 1, 4, 100_000),
    "selective-copying": ("symbols", 6, 1, 0.01, 1, 8, 100_000),
    "key-recall": ("symbols", 72, 1, 0.01, 1, 4, 64),
}


def test_sizes_and_spans_of_every_task():
    """Kind, inputs, outputs, the error at which it is solved, and the least, first and longest span."""
    found = {
        name: (one.kind, one.inputs, one.outputs, one.solved, one.least, one.span, one.most)
        for name, one in ((name, classic_task(name)) for name in TASKS)
    }
    assert found == DECLARED
