// The components of a mixture: the weight of each, and what it predicts, by layer.

import { el, newest, number, percent, section, shownToken } from "../tools.js";

export function components(desk) {
  const verdict = el("p", { class: "note" });
  const stack = el("div", { class: "stack", role: "img" });
  const layers = el("div", { class: "layers" });
  const refresh = newest(() => desk.attempt(async () => {
    const question = desk.question({ position: desk.position, count: 6 });
    const found = await desk.backend.components(question, desk.left.signal);
    const colours = new Map(found.layers.map((one, at) => [one.layer, at % 8]));
    verdict.textContent = `${found.components.length} components, of which ${number(found.in_use, 1)} are in use here.`;
    stack.replaceChildren(...found.components.map((one) => el("i", {
      title: `component ${one.name}: ${percent(one.weight)}`,
      style: { "--weight": one.weight, "--colour": `var(--series-${colours.get(one.layer)})` },
    })));
    stack.setAttribute("aria-label", found.components.map((one) => `${one.name} ${percent(one.weight)}`).join(", "));
    layers.replaceChildren(...found.layers.map((layer) => {
      const own = found.components.filter((one) => one.layer === layer.layer);
      const name = layer.layer ? `Layer ${layer.layer}` : "The embedding (layer 0)";
      return el("div", { class: "layer", style: { "--colour": `var(--series-${colours.get(layer.layer)})` } },
        el("h3", {}, name, " ", el("small", {}, percent(layer.weight))), likely(layer.words),
        own.length > 1 ? el("details", {}, el("summary", {}, `its ${own.length} components`), table(own)) : null);
    }));
  }));
  const element = section("components", "Components of the mixture",
    "Each component predicts on its own; the weights mix them. Layers count from the embedding, 0.", verdict, stack,
    layers);
  return { element, refresh, hears: ["scored", "place"] };
}

function likely(words) {
  return el("ul", { class: "chips" }, words.map((word) => el("li", {},
    shownToken(word.token), " ", el("small", {}, percent(word.probability)))));
}

function table(own) {
  const rows = [...own].sort((a, b) => b.weight - a.weight).map((one) => el("tr", {},
    el("th", { scope: "row" }, one.name), el("td", {}, percent(one.weight)), el("td", {}, number(one.entropy, 1)),
    el("td", { class: "text" }, one.words.map((word) => shownToken(word.token)).join(" "))));
  const head = ["component", "weight", "bits", "predicts"].map((name, at) =>
    el("th", { scope: "col", class: at === 3 ? "text" : null }, name));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "components" },
    el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}
