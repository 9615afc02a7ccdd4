// The distribution of the next word as bars, with the settings of draws.

import { el, newest, number, percent, section, shownToken, slider } from "../tools.js";

export function next(desk) {
  const list = el("ol", { class: "bars", "aria-label": "most probable next tokens" });
  const where = el("p", { class: "note" });
  const refresh = newest(() => desk.attempt(async () => {
    const question = desk.question({ ...desk.settings, position: desk.position, count: 16 });
    const found = await desk.backend.next(question, desk.left.signal);
    const top = Math.max(...found.words.map((word) => Math.max(word.probability, word.drawn)));
    const rows = found.words.map((word) => bar(word, found.actual, top));
    if (found.actual && !found.words.some((word) => word.id === found.actual.id)) {
      rows.push(bar(found.actual, found.actual, top));
    }
    list.replaceChildren(...rows);
    where.textContent = `${found.actual ? `Before “${shownToken(found.actual.token)}”` : "At the end"}: entropy `
      + `${number(found.entropy)} bits; ${percent(found.left)} is left for all other tokens.`;
  }));

  function bar(word, actual, top) {
    const is = actual && actual.id === word.id;
    const shown = shownToken(word.token);
    return el("li", { class: is ? "actual" : null }, el("button", {
      type: "button",
      title: `${word.token}: ${percent(word.probability)}, drawn ${percent(word.drawn)}; write it`,
      "aria-label": `${word.token}: ${percent(word.probability)}, drawn with ${percent(word.drawn)}`
        + `${is ? ", the word of the text" : ""}; write it`,
      onclick: () => desk.tell("write", { text: appended(word.token) }),
      style: { "--width": word.probability / top, "--drawn": word.drawn / top },
    }, el("span", { class: "token" }, shown), el("span", { class: "rail" }, el("i"), el("b")),
    el("span", { class: "share" }, percent(word.probability))));
  }

  function appended(token) {
    const at = desk.position;
    const kept = at === null ? desk.text : before(desk, at);
    if (token === "<eos>") return `${kept}\n`;
    const space = desk.run.spelt || kept === "" || /\s$/.test(kept) ? "" : " ";
    return kept + space + token;
  }

  const set = (name, value) => {
    desk.settings[name] = value;
    desk.tell("settings");
  };
  const settings = el("fieldset", { class: "settings" }, el("legend", {}, "Settings of draws"),
    slider("temperature", { min: 0, max: 2, step: 0.05, value: 1 }, (value) => number(value),
      (value) => set("temperature", value)),
    slider("top k", { min: 0, max: 50, step: 1, value: 0 }, (value) => (value ? String(value) : "all"),
      (value) => set("top_k", value || null)),
    slider("top p", { min: 0.05, max: 1, step: 0.05, value: 1 }, (value) => (value < 1 ? number(value) : "all"),
      (value) => set("top_p", value < 1 ? value : null)));
  const key = el("p", { class: "note key" }, el("i", { class: "of-model" }), " the model ",
    el("i", { class: "of-draws" }), " drawn with these settings");
  const element = section("next", "What may follow", "Choose a word of the text to see what was expected there;"
    + " choose a bar to write it.", where, list, key, settings);
  return { element, refresh, hears: ["scored", "place", "settings"] };
}

/** The text before a position, as its marks stand in it. */
export function before(desk, position) {
  let place = 0;
  for (const mark of desk.marks) {
    if (mark.at !== null && mark.at >= position) break;
    const found = mark.ends ? desk.text.indexOf("\n", place) : desk.text.indexOf(mark.text, place);
    if (found >= 0) place = found + (mark.ends ? 1 : mark.text.length);
  }
  return desk.text.slice(0, place);
}
