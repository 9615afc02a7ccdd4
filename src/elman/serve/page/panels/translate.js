// A source and its best targets, with the attention of each word.

import { el, labelled, newest, number, percent, section, slider, svg } from "../tools.js";

const CELL = 24;

export function translate(desk) {
  const source = el("textarea", { rows: 3, spellcheck: "false", dir: "auto", maxlength: desk.opened.longest_text });
  const targets = el("ol", { class: "targets" });
  const map = el("div", { class: "scroll drawing", tabindex: 0, role: "region", "aria-label": "attention" });
  const note = el("p", { class: "note", role: "status" });
  let beam = 5;
  const ask = newest(() => desk.attempt(async () => {
    if (!source.value.trim()) {
      targets.replaceChildren();
      map.replaceChildren();
      note.textContent = "";
      return;
    }
    const question = { run: desk.run.name, text: source.value, beam, targets: Math.min(3, beam) };
    const found = await desk.backend.translate(question, desk.left.signal);
    note.textContent = found.note;
    const buttons = found.targets.map((one, at) => el("button", {
      type: "button", "aria-pressed": "false", onclick: () => show(at),
    }, one.text || "(empty)"));
    const show = (at) => {
      buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === at)));
      map.replaceChildren(...(found.targets[at].attention.length ? [draw(found.source, found.targets[at])] : []));
    };
    targets.replaceChildren(...found.targets.map((one, at) => el("li", {}, buttons[at],
      el("span", { class: "note" }, `${number(one.bits, 1)} bits`))));
    if (found.targets.length) show(0);
    else map.replaceChildren();
  }));
  source.addEventListener("input", ask);
  const element = section("translate", "From source to target", "The best targets that a beam search finds.",
    labelled("source", source),
    slider("beam", { min: 1, max: 10, step: 1, value: beam }, String, (value) => {
      beam = value;
      ask();
    }), note, targets,
    desk.can("attention") ? el("p", { class: "note" }, "A row is a word of the target, a column one of the source; the"
      + " darker a cell, the larger the weight.") : null, map);
  element.classList.add("wide");
  return { element };
}

const wide = (word) => [...word].reduce((sum, letter) => sum + (letter > "\u2e80" ? 13 : 7.6), 0);

function draw(source, target) {
  const rows = [...target.words, "↵"];
  const left = 14 + Math.max(...rows.map(wide));
  const above = 16 + 0.72 * Math.max(...source.map(wide));
  const width = left + source.length * CELL + above;
  const height = above + rows.length * CELL + 4;
  const columns = source.map((word, at) => {
    const [x, y] = [left + (at + 0.6) * CELL, above - 8];
    return svg("text", { x, y, transform: `rotate(-45 ${x} ${y})` }, word);
  });
  const cells = rows.flatMap((word, row) => [
    svg("text", { x: left - 8, y: above + row * CELL + CELL * 0.68, "text-anchor": "end" }, word),
    ...target.attention[row].map((weight, at) => svg("rect", {
      x: left + at * CELL, y: above + row * CELL, width: CELL - 1, height: CELL - 1, rx: 2,
      "fill-opacity": Math.max(0.05, Math.min(1, weight)).toFixed(2),
    }, svg("title", {}, `${word} attends to ${source[at]}: ${percent(weight)}`))),
  ]);
  return svg("svg", { class: "attention", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `attention of ${target.words.join(" ")} to ${source.join(" ")}` }, columns, cells);
}
