// The page: one backend, one run at a time, and the panels that it can fill.

import { Chosen } from "./chosen.js";
import { el, number } from "./tools.js";
import { compare } from "./panels/compare.js";
import { components } from "./panels/components.js";
import { letters } from "./panels/letters.js";
import { music } from "./panels/music.js";
import { neighbours } from "./panels/neighbours.js";
import { next } from "./panels/next.js";
import { pairs } from "./panels/pairs.js";
import { samples } from "./panels/samples.js";
import { states } from "./panels/states.js";
import { translate } from "./panels/translate.js";
import { write } from "./panels/write.js";

const TEXT = [
  ["score", write], ["next", next], ["generate", samples], ["components", components], ["states", states],
  ["letters", letters], ["compare", compare], ["pairs", pairs], ["neighbours", neighbours],
];
const PANELS = { text: TEXT, music: [["score", music]], pairs: [["translate", translate]] };

/** What the panels share: the run, the text, the place in it that was chosen, and the settings of draws. */
class Desk extends EventTarget {
  constructor(backend, opened, run) {
    super();
    this.backend = backend;
    this.opened = opened;
    this.run = run;
    this.text = "";
    this.marks = [];
    this.position = null;
    this.settings = { temperature: 1, top_k: null, top_p: null };
    this.left = new AbortController();
  }

  /** The question of a panel about the text, at the place that was chosen. */
  question(more = {}) {
    return { run: this.run.name, text: this.text, ...more };
  }

  tell(what, detail = {}) { this.dispatchEvent(new CustomEvent(what, { detail })); }

  hear(what, handler) { this.addEventListener(what, handler, { signal: this.left.signal }); }

  can(operation) { return this.run.panels.includes(operation); }

  /** Run work of a panel; what goes wrong is shown and stops nothing. */
  async attempt(work) {
    try {
      await work();
      say("");
    } catch (error) {
      if (error.name !== "AbortError") say(error.message);
    }
  }
}

function say(line) {
  document.getElementById("status").textContent = line;
}

/** Calls `refresh` when what a panel shows has changed and it is in sight; later, when it comes into sight. */
function whileSeen(desk, element, refresh) {
  let stale = true;
  let seen = false;
  const now = () => {
    if (stale && seen) {
      stale = false;
      refresh();
    }
  };
  const watch = new IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    now();
  }, { rootMargin: "200px" });
  watch.observe(element);
  desk.left.signal.addEventListener("abort", () => watch.disconnect());
  return () => {
    stale = true;
    now();
  };
}

function show(desk) {
  const { run } = desk;
  document.title = `${run.title} – elman`;
  document.getElementById("title").textContent = run.title;
  const size = run.kind === "music" ? "pitches" : run.spelt ? "tokens" : "words";
  document.getElementById("facts").textContent = `${number(run.parameters, 0)} parameters, ${number(run.size, 0)} `
    + `${size}${run.tokenisation ? `, tokenisation: ${run.tokenisation}` : ""}`;
  const place = document.getElementById("panels");
  place.replaceChildren();
  for (const [needs, make] of PANELS[run.kind]) {
    if (!desk.can(needs)) continue;
    const panel = make(desk);
    place.append(panel.element);
    if (!panel.refresh) continue;
    const refresh = whileSeen(desk, panel.element, panel.refresh);
    for (const event of panel.hears) desk.hear(event, refresh);
  }
  fill([...place.children]);
  desk.tell("begun");
}

/** A panel that would stand alone in a row of two takes the whole row. */
function fill(panels) {
  let before = null;
  for (const panel of [...panels, null]) {
    const wide = !panel || panel.classList.contains("wide");
    if (wide && before) before.classList.add("wide");
    before = wide || before ? null : panel;
  }
}

async function begin() {
  const backend = new Chosen();
  const opened = await backend.open();
  const select = document.getElementById("run");
  select.append(...opened.runs.map((run) => el("option", { value: run.name }, `${run.name} (${run.kind})`)));
  document.getElementById("run-label").hidden = opened.runs.length < 2;
  let desk = null;
  const choose = () => {
    const text = desk && desk.run.kind === "text" ? desk.text : "";
    if (desk) desk.left.abort();
    desk = new Desk(backend, opened, opened.runs.find((run) => run.name === select.value));
    desk.text = desk.run.kind === "text" ? text : "";
    show(desk);
  };
  select.addEventListener("change", choose);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && desk) desk.tell("stop");
  });
  window.addEventListener("pagehide", () => backend.leave());
  choose();
  document.body.dataset.ready = "yes";
}

begin().catch((error) => {
  document.getElementById("title").textContent = "The model cannot be opened";
  say(error.message);
});
