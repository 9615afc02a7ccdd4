// Elements, numbers in words, and work of which only the newest counts.

const SVG = "http://www.w3.org/2000/svg";

/** An element: attributes by name, `on...` handlers, `style` as an object of properties, then its children. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** As `el`, for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

let labels = 0;

/** A label and its control, which get a common identifier. */
export function labelled(text, control, ...after) {
  control.id ||= `control-${(labels += 1)}`;
  return el("div", { class: "field" }, el("label", { for: control.id }, text), control, ...after);
}

/** A section of the page with its heading. */
export function section(name, title, lead, ...children) {
  const heading = el("h2", { id: `${name}-title` }, title);
  const note = lead ? el("p", { class: "note" }, lead) : null;
  return el("section", { id: name, class: "panel", "aria-labelledby": heading.id }, heading, note, ...children);
}

/** A slider with its value beside it; `shown` writes the value, `changed` hears of it. */
export function slider(text, { min, max, step, value }, shown, changed) {
  const output = el("output", {}, shown(value));
  const input = el("input", { type: "range", min, max, step, value, "aria-valuetext": shown(value) });
  input.addEventListener("input", () => {
    output.textContent = shown(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
    changed(Number(input.value));
  });
  return labelled(text, input, output);
}

export const number = (value, digits = 2) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

export const percent = (share) => (share >= 0.0995 ? `${number(100 * share, 0)} %`
  : share >= 0.001 ? `${number(100 * share, 1)} %` : share > 0 ? "< 0.1 %" : "0 %");

/** A surprisal as a probability. */
export function odds(bits) {
  if (bits < 1) return `${number(100 * 2 ** -bits, 0)} %`;
  return bits < 40 ? `1 in ${number(2 ** bits, 0)}` : `1 in 2^${number(bits, 0)}`;
}

/** Where a surprisal lies on the scale, 0 to 1: it ends at 16 bits, as in the report. */
export const heat = (bits) => Math.min(1, Math.max(0, bits / 16));

/** How a token is written by itself. */
export function shownToken(token) {
  if (token === "<eos>" || token === "\n") return "↵";
  return token.trim() === "" ? "␣" : token;
}

/** `work` for the newest argument only: while it runs, later calls wait, and all of them but the last are dropped. */
export function newest(work) {
  let running = false;
  let waiting = null;
  return async function call(...given) {
    if (running) {
      waiting = given;
      return;
    }
    running = true;
    try {
      await work(...given);
    } finally {
      running = false;
      if (waiting) {
        const next = waiting;
        waiting = null;
        call(...next);
      }
    }
  };
}
