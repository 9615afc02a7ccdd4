// The text, and the heat map of its words while it is written.

import { el, labelled, newest, number, section } from "../tools.js";
import { WordRow } from "../words.js";

export function write(desk) {
  const area = el("textarea", {
    rows: 4, spellcheck: "false", autocomplete: "off", maxlength: desk.opened.longest_text, dir: "auto",
    placeholder: "Type a text: every word shows how much it surprised the model",
  });
  area.value = desk.text;
  const facts = el("p", { class: "note figures", "aria-live": "off" }, "");
  const notes = el("p", { class: "note" });
  const row = new WordRow("Words of the text by surprisal", {
    spaced: !desk.run.spelt,
    choose: (place) => choose(place),
  });
  row.follows = true;
  row.element.id = "heat-map";

  function choose(place) {
    const mark = place === null ? null : desk.marks[place];
    desk.position = mark && mark.at !== null ? mark.at : null;
    desk.tell("place");
  }

  const score = newest(async () => {
    const began = performance.now();
    await desk.attempt(async () => {
      const found = await desk.backend.score(desk.question(), desk.left.signal);
      desk.marks = found.marks;
      row.show(found.marks);
      const mean = found.tokens ? found.bits / found.tokens : 0;
      facts.textContent = found.tokens
        ? `${number(found.tokens, 0)} tokens, ${number(mean)} bits per token, perplexity `
          + `${found.perplexity === null ? "∞" : number(found.perplexity, 1)}${found.adapted ? ", adapting" : ""}; `
          + `${number(found.computed, 0)} read in ${number(performance.now() - began, 0)} ms`
        : "";
      notes.textContent = found.notes.join("; ");
      desk.tell("scored");
    });
  });

  /** Take the text of the area; its marks follow. */
  function changed() {
    desk.text = area.value;
    desk.position = null;
    row.select(null, false);
    score();
  }

  area.addEventListener("input", changed);
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey) desk.tell("sample");
  });
  desk.hear("begun", score);
  desk.hear("write", (event) => {
    area.value = event.detail.text;
    changed();
    area.focus();
  });

  const adapt = el("input", { type: "checkbox", role: "switch" });
  adapt.addEventListener("change", () => desk.attempt(async () => {
    const on = adapt.checked;
    try {
      await desk.backend.adapt({ run: desk.run.name, on }, desk.left.signal);
    } catch (error) {
      adapt.checked = !on;
      throw error;
    }
    await score();
  }));
  const field = labelled("Text", area);
  const tools = el("div", { class: "bar" }, desk.can("adapt")
    ? el("label", { class: "switch", title: "dynamic evaluation: the weights follow what was read" }, adapt,
      " learn from this text") : null, facts);
  const scale = el("div", { class: "scale", "aria-hidden": "true" }, "0 bits ", el("i"), " 16 or more");
  const element = section("write", "What surprises the model", null, field, tools, scale, row.element, notes);
  element.classList.add("wide");
  return { element };
}
