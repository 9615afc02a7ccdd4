// A piano roll: notes are clicked in, the model continues, and the piece is played.

import { el, labelled, newest, number, section, slider } from "../tools.js";
import { read, written } from "../midi.js";
import { Player } from "../player.js";
import { Roll, noteName } from "../roll.js";

const TEMPO = 120;  // quarters per minute at which steps have their usual seconds

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
  const chosen = el("input", { type: "file", accept: ".mid,.midi,audio/midi", hidden: true });
  chosen.addEventListener("change", () => desk.attempt(async () => {
    const [file] = chosen.files;
    if (!file) return;
    chosen.value = "";
    const found = read(new Uint8Array(await file.arrayBuffer()), roll.quarter, [roll.low, roll.high]);
    roll.open(found.steps.slice(0, desk.opened.most_steps));
    const lost = [found.left ? `${found.left} notes of drums or beyond the keys` : "",
      found.steps.length > desk.opened.most_steps ? `${found.steps.length - desk.opened.most_steps} steps at the end` : ""].filter(Boolean);
    said.textContent = `${file.name}: ${roll.trimmed().length} steps of 1/${4 * roll.quarter}, ${number(found.tempo, 0)} quarters per minute`
      + `${lost.length ? `; left out: ${lost.join(", ")}` : ""}.`;
    tempo(found.tempo);
  }));
  const open = el("button", { type: "button", onclick: () => chosen.click() }, "Open MIDI");
  const save = el("button", { type: "button", onclick: () => {
    const link = el("a", { download: `${desk.run.name}.mid` });
    link.href = URL.createObjectURL(new Blob([written(roll.trimmed(), roll.quarter, TEMPO * player.speed)], { type: "audio/midi" }));
    link.click();
    URL.revokeObjectURL(link.href);
  } }, "Save MIDI");
  const speed = slider("tempo", { min: 40, max: 240, step: 1, value: TEMPO }, (value) => `${number(value, 0)} quarters per minute`, (value) => {
    player.speed = value / TEMPO;
    roll.speed = player.speed;
    roll.paint();
  });
  const tempo = (value) => {
    const input = speed.querySelector("input");
    input.value = Math.round(value);
    input.dispatchEvent(new Event("input"));
  };
  roll.changed = score;
  roll.told = (line) => { said.textContent = line; };
  desk.hear("stop", halt);
  desk.hear("begun", score);
  desk.left.signal.addEventListener("abort", halt);
  const element = section("music", "A piano roll", null,
    el("div", { class: "bar" }, proceed, stop, play, undo, clear, open, save, chosen, labelled("steps", length)),
    el("div", { class: "bar" }, slider("temperature", { min: 0, max: 2, step: 0.05, value: 1 }, (value) => number(value), (value) => {
      temperature = value;
      score();
    }), speed), roll.element, facts, said);
  element.classList.add("wide");
  return { element };
}
