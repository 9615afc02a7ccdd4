// A piano roll: notes are clicked in, the model continues, and the piece is played.

import { el, labelled, newest, number, section, slider } from "../tools.js";
import { Player } from "../player.js";
import { Roll, noteName } from "../roll.js";

export function music(desk) {
  const roll = new Roll(desk.run);
  const said = el("p", { class: "note", "aria-live": "polite" }, "Click into the grid, or move with the arrow keys and press the space bar.");
  const facts = el("p", { class: "note figures" });
  const player = new Player(desk.run.step_seconds);
  const length = el("input", { type: "number", min: 1, max: desk.opened.most_drawn, value: 32, inputmode: "numeric" });
  let temperature = 1;
  let drawing = null;

  const score = newest(() => desk.attempt(async () => {
    const notes = roll.trimmed();
    const question = { run: desk.run.name, roll: notes };
    const [found, next] = await Promise.all([
      desk.backend.score(question, desk.left.signal),
      desk.backend.next({ ...question, temperature }, desk.left.signal),
    ]);
    roll.surprised(found.steps.map((step) => step.bits), next);
    const names = next.pitches.map((pitch, at) => [pitch, next.shares[at]]).sort((a, b) => b[1] - a[1]).slice(0, 5);
    facts.textContent = `${notes.length} steps${notes.length ? `, ${number(found.bits / notes.length, 1)} bits per step` : ""}.`
      + ` Likely next: ${names.map(([pitch, share]) => `${noteName(pitch)} ${number(100 * share, 0)} %`).join(", ")}`;
  }));

  async function draw() {
    if (drawing) return;
    drawing = new AbortController();
    proceed.disabled = true;
    stop.disabled = false;
    await desk.attempt(async () => {
      const question = {
        run: desk.run.name, roll: roll.trimmed(), temperature,
        drawn: Math.max(1, Math.min(desk.opened.most_drawn, Number(length.value) || 32)),
      };
      for await (const event of desk.backend.generate(question, drawing.signal)) {
        if (event.event === "step") roll.append(event.notes);
        if (event.event === "error") throw new Error(event.error);
      }
    });
    drawing = null;
    proceed.disabled = false;
    stop.disabled = true;
    score();
  }

  const halt = () => {
    drawing?.abort();
    player.stop();
  };
  const proceed = el("button", { type: "button", class: "main", onclick: draw }, "Continue");
  const stop = el("button", { type: "button", disabled: true, onclick: () => drawing?.abort() }, "Stop");
  const play = el("button", { type: "button", onclick: () => (player.playing ? player.stop() : player.play(roll.trimmed())) }, "Play");
  player.told = (step) => {
    roll.playing(step);
    play.textContent = step === null ? "Play" : "Stop playing";
  };
  const undo = el("button", { type: "button", onclick: () => roll.undo() }, "Undo");
  const clear = el("button", { type: "button", onclick: () => roll.clear() }, "Clear");
  roll.changed = score;
  roll.told = (line) => { said.textContent = line; };
  desk.hear("stop", halt);
  desk.hear("begun", score);
  desk.left.signal.addEventListener("abort", halt);
  const element = section("music", "A piano roll", null,
    el("div", { class: "bar" }, proceed, stop, play, undo, clear, labelled("steps", length)),
    el("div", { class: "bar" }, slider("temperature", { min: 0, max: 2, step: 0.05, value: 1 }, (value) => number(value), (value) => {
      temperature = value;
      score();
    }), slider("speed", { min: 0.5, max: 2, step: 0.1, value: 1 }, (value) => `${number(value, 1)} ×`, (value) => {
      player.speed = value;
    })), roll.element, facts, said);
  element.classList.add("wide");
  return { element };
}
