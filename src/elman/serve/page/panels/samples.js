// Samples that stream, and can be stopped, continued and branched: a state is a value, so every word is a beginning.

import { el, labelled, section } from "../tools.js";
import { WordRow } from "../words.js";
import { before } from "./next.js";

const MOST = 12;

export function samples(desk) {
  const list = el("div", { class: "samples" });
  const length = el("input", { type: "number", min: 1, max: desk.opened.most_drawn, value: 60, inputmode: "numeric" });
  const open = new Set();

  function begin() {
    const position = desk.position;
    const text = desk.text;
    start({ text, position, shown: position === null ? text : before(desk, position), tokens: [] });
  }

  /** A sample that continues the tokens of another one, up to a place. */
  function start(from, after = null) {
    const sample = { ...from, tokens: from.tokens.map((token) => ({ ...token, held: true })) };
    const row = new WordRow("Words of the sample; choose one to branch after it", {
      spaced: false,
      choose: (place) => {
        if (place !== null) start({ ...sample, tokens: sample.tokens.slice(0, place + 1) }, card);
      },
    });
    const prompt = el("span", { class: "prompt" }, tail(sample.shown));
    const again = el("button", { type: "button", onclick: () => draw() }, "Continue");
    const stop = el("button", { type: "button", onclick: () => sample.control?.abort() }, "Stop");
    const use = el("button", { type: "button", onclick: () => desk.tell("write", { text: written() }) }, "Write it");
    const drop = el("button", { type: "button", "aria-label": "Remove this sample", onclick: () => {
      sample.control?.abort();
      card.remove();
    } }, "×");
    const state = el("span", { class: "note", role: "status" });
    const run = el("div", { class: "run" }, prompt, row.element);
    const card = el("article", { class: "sample", "aria-label": "sample" }, run,
      el("div", { class: "bar tools" }, stop, again, use, drop, state));
    const written = () => sample.shown + sample.tokens.map((token) => token.text).join("");
    row.show(sample.tokens.map(item));

    let following = false;
    function follow() {
      if (following) return;
      following = true;
      requestAnimationFrame(() => {
        following = false;
        run.scrollTop = run.scrollHeight;
      });
    }

    async function draw() {
      if (sample.control) return;
      sample.control = new AbortController();
      const gone = () => sample.control?.abort();
      desk.left.signal.addEventListener("abort", gone);
      open.add(sample);
      stop.disabled = false;
      again.disabled = true;
      state.textContent = "drawing …";
      card.dataset.state = "drawing";
      let end = "stopped";
      await desk.attempt(async () => {
        const question = {
          run: desk.run.name, text: sample.text, position: sample.position, ...desk.settings,
          drawn: Math.max(1, Math.min(desk.opened.most_drawn, Number(length.value) || 60)),
          after: sample.tokens.map((token) => token.id),
        };
        for await (const event of desk.backend.generate(question, sample.control.signal)) {
          if (event.event === "token") {
            const token = { id: event.id, text: event.text, bits: event.bits, ends: event.token === "<eos>" };
            sample.tokens.push(token);
            row.add(item(token));
            follow();
          } else if (event.event === "end") {
            end = event.reason === "length" ? "done" : "the server ended";
          } else if (event.event === "error") {
            throw new Error(event.error);
          }
        }
      });
      desk.left.signal.removeEventListener("abort", gone);
      open.delete(sample);
      sample.control = null;
      stop.disabled = true;
      again.disabled = false;
      state.textContent = `${end}, ${sample.tokens.length} tokens`;
      card.dataset.state = end;
    }

    if (after) after.after(card);
    else list.prepend(card);
    if (from.tokens.length) card.classList.add("branch");
    while (list.children.length > MOST) list.lastElementChild.remove();
    draw();
  }

  const stopAll = () => open.forEach((sample) => sample.control?.abort());
  desk.hear("sample", begin);
  desk.hear("stop", stopAll);
  const tools = el("div", { class: "bar" },
    el("button", { type: "button", class: "main", onclick: begin }, "Draw a sample"),
    el("button", { type: "button", onclick: stopAll }, "Stop all"), labelled("tokens", length));
  const element = section("samples", "Samples",
    "From the end of the text, or from the word that is chosen in it. Choose a word of a sample to branch after it.",
    tools, list);
  return { element };
}

const item = (token) => ({ ...token, begins: false, label: "branch after it" });

/** The last words of a prompt. */
function tail(text) {
  return text.length > 160 ? `… ${text.slice(-150)}` : text;
}
