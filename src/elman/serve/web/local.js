// The backend without a server: the model is computed here, step by step, by onnxruntime-web.

import * as ort from "./ort.wasm.bundle.min.mjs";
import { Backend, Refused } from "./backend.js";
import { Reading, Writing } from "./reading.js";

const KEPT = 48;
const NODES = 6000;
const BITS = Math.LN2;

ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = { wasm: new URL("./ort-wasm-simd-threaded.wasm", import.meta.url).href };

/** A prefix of a text: how its last symbol was predicted, and the state before that symbol is read. */
class Node {
  constructor(symbol, state, scored = null) {
    Object.assign(this, { symbol, state, scored, children: new Map(), after: null });
  }
}

export class Local extends Backend {
  async open() {
    const answer = await fetch("run.json");
    if (!answer.ok) throw new Refused("run.json is missing; copy the whole folder");
    this.run = await answer.json();
    this.reading = new Reading(this.run);
    this.session = await ort.InferenceSession.create("model.onnx", { executionProviders: ["wasm"], logSeverityLevel: 3 });
    this.turn = Promise.resolve();
    this.recent = [];
    this.begin();
    return { runs: [this.run.facts], longest_text: 4000, most_steps: 0, most_drawn: 1000 };
  }

  begin() {
    const state = this.run.states.map(({ shape, values }) =>
      (values ? Float32Array.from(values) : new Float32Array(shape.reduce((size, one) => size * one, 1))));
    this.root = new Node(this.run.first, state);
    this.nodes = 1;
  }

  /** What the graph gives after the symbol of a prefix; the last ones are kept. */
  async look(node) {
    if (node.after) return node.after;
    const step = this.turn.then(() => this.step(node));
    this.turn = step.catch(() => {});
    return step;
  }

  async step(node) {
    if (node.after) return node.after;
    const feeds = { symbols: new ort.Tensor("int64", BigInt64Array.of(BigInt(node.symbol)), [1]) };
    this.run.states.forEach(({ shape, dtype }, at) => {
      feeds[`state_${at}`] = new ort.Tensor(dtype, node.state[at], shape);
    });
    const found = await this.session.run(feeds);
    const state = this.run.states.map((_, at) => found[`next_state_${at}`].data);
    node.after = { logProbs: found.log_probs.data, levels: found.levels.data, state,
      prior: found.prior?.data ?? null, each: found.each?.data ?? null };
    node.entropy = entropy(node.after.logProbs);
    this.recent.push(node);
    if (this.recent.length > KEPT) this.recent.shift().after = null;
    return node.after;
  }

  /** The prefixes of symbols, each scored; only new ones are computed. */
  async path(ids) {
    if (this.nodes + ids.length > NODES) this.begin();
    const found = [this.root];
    let computed = 0;
    for (const id of ids) {
      const node = found.at(-1);
      let child = node.children.get(id);
      if (!child) {
        const { logProbs, state } = await this.look(node);
        const rank = 1 + logProbs.reduce((count, one) => count + (one > logProbs[id] ? 1 : 0), 0);
        child = new Node(id, state, { bits: -logProbs[id] / BITS, rank, entropy: node.entropy });
        node.children.set(id, child);
        this.nodes += 1;
        computed += 1;
      }
      found.push(child);
    }
    return { found, computed };
  }

  /** The pieces of a text, their ids, and their prefixes. */
  async read(text, position = null) {
    const pieces = this.reading.pieces(text);
    const all = pieces.map((piece) => piece.id).filter((id) => id !== null && id !== undefined);
    const { found, computed } = await this.path(position === null ? all : all.slice(0, position));
    return { pieces, ids: all, found, computed };
  }

  async ask(operation, question) {
    const answers = { score: this.scores, next: this.nexts, components: this.mixed, states: this.walks, pairs: this.judged };
    if (!answers[operation]) throw new Refused(`this page does not answer ${operation}`);
    return answers[operation].call(this, question);
  }

  async scores({ text }) {
    const { pieces, found, computed } = await this.read(text);
    const scored = found.slice(1).map((node) => node.scored);
    const bits = scored.reduce((sum, one) => sum + one.bits, 0);
    const strange = [...new Set(pieces.filter((piece) => piece.unknown).map((piece) => piece.text))];
    return {
      kind: "text", marks: this.reading.marks(pieces, scored), tokens: scored.length, bits, computed, adapted: false,
      perplexity: scored.length ? 2 ** (bits / scored.length) : null,
      notes: strange.length ? [`not in the vocabulary: ${strange.slice(0, 8).join(", ")}`] : [],
    };
  }

  async nexts({ text, position = null, count = 20, ...settings }) {
    const { ids, found } = await this.read(text, position);
    const { logProbs } = await this.look(found.at(-1));
    const drawn = this.weighed(logProbs, settings);
    const order = best(logProbs, count);
    const candidate = (id) => ({ token: this.run.words[id], id, probability: Math.exp(logProbs[id]), drawn: drawn[id] });
    const words = order.map(candidate);
    const at = position ?? ids.length;
    return {
      kind: "text", words, entropy: entropy(logProbs), position: at, actual: at < ids.length ? candidate(ids[at]) : null,
      left: Math.max(0, 1 - words.reduce((sum, word) => sum + word.probability, 0)),
    };
  }

  /** The shares of draws: temperature, the k most probable, and those that together reach p; `<unk>` is never drawn. */
  weighed(logProbs, { temperature = 1, top_k: k = null, top_p: p = null }) {
    const scores = Float64Array.from(logProbs);
    if (this.run.unk !== null) scores[this.run.unk] = -Infinity;
    const greatest = scores.reduce((most, one, id) => (one > scores[most] ? id : most), 0);
    if (temperature === 0) return scores.map((_, id) => (id === greatest ? 1 : 0));
    let shares = scores.map((one) => Math.exp((one - scores[greatest]) / temperature));
    const order = k !== null || p !== null ? [...shares.keys()].sort((a, b) => shares[b] - shares[a]) : [];
    if (k !== null && k < shares.length) {
      const least = shares[order[k - 1]];
      shares = shares.map((one) => (one < least ? 0 : one));
    }
    const total = shares.reduce((sum, one) => sum + one, 0);
    shares = shares.map((one) => one / total);
    if (p === null || p >= 1) return shares;
    let before = 0;
    for (const id of order) {
      const share = shares[id];
      if (before >= p) shares[id] = 0;
      before += share;
    }
    const kept = shares.reduce((sum, one) => sum + one, 0);
    return shares.map((one) => one / kept);
  }

  async *events(operation, question, signal) {
    if (operation !== "generate") throw new Refused(`this page does not answer ${operation}`);
    const { text, position = null, after = [], drawn, seed = crypto.getRandomValues(new Uint32Array(1))[0] } = question;
    const { ids } = await this.read(text, position);
    const prompt = [...ids.slice(0, position ?? ids.length), ...after];
    const writing = new Writing(this.reading);
    for (const id of prompt) writing.add(this.run.words[id]);
    let node = (await this.path(prompt)).found.at(-1);
    const random = generator(seed);
    yield { event: "begin", seed };
    for (let count = 0; count < drawn; count += 1) {
      await new Promise((resolve) => { setTimeout(resolve); });
      signal?.throwIfAborted();
      const { logProbs, state } = await this.look(node);
      const shares = this.weighed(logProbs, question);
      let [left, id] = [random(), -1];
      for (let at = 0; at < shares.length && left >= 0; at += 1) {
        if (shares[at] > 0) id = at;
        left -= shares[at];
      }
      const token = this.run.words[id];
      node = new Node(id, state);
      yield { event: "token", id, token, text: writing.add(token), bits: -logProbs[id] / BITS };
    }
    yield { event: "end", reason: "length" };
  }

  async mixed({ text, position = null, count = 6 }) {
    const { ids, found } = await this.read(text, position);
    const { prior, each } = await this.look(found.at(-1));
    const size = this.run.words.length;
    const likely = (probabilities) => best(probabilities, count).map((id) =>
      ({ token: this.run.words[id], probability: probabilities[id] }));
    const layers = this.run.component_layers;
    const parts = layers.map((layer, at) => {
      const logs = each.subarray(at * size, (at + 1) * size);
      return { layer, at, weight: prior[at], probabilities: logs.map(Math.exp), entropy: entropy(logs) };
    });
    const components = parts.map(({ layer, at, weight, probabilities, entropy: bits }) => ({
      name: `${layer}.${layers.slice(0, at + 1).filter((one) => one === layer).length}`, layer, weight, entropy: bits,
      words: likely(probabilities),
    }));
    const shares = [...new Set(layers)].map((layer) => {
      const own = parts.filter((part) => part.layer === layer);
      const weight = own.reduce((sum, part) => sum + part.weight, 0);
      const together = new Float64Array(size);
      for (const part of own) part.probabilities.forEach((one, id) => { together[id] += (part.weight * one) / weight; });
      return { layer, weight, words: likely(together) };
    });
    const uncertainty = parts.reduce((sum, { weight }) => sum - (weight > 0 ? weight * Math.log(weight) : 0), 0);
    return { components, layers: shares, in_use: Math.exp(uncertainty), position: position ?? ids.length };
  }

  async walks({ text, layer = null }) {
    const { bases, radii } = this.run;
    const level = layer ?? bases.length - 1;
    const start = bases.slice(0, level).reduce((sum, basis) => sum + basis.mean.length, 0);
    const { mean, axes, shares } = bases[level];
    const { pieces, found } = await this.read(text);
    const marks = this.reading.marks(pieces, found.slice(1).map((node) => node.scored)).filter((mark) => mark.at !== null).slice(-120);
    const [points, norms] = [[], []];
    for (const place of [0, ...marks.map((mark) => mark.at + mark.tokens)]) {
      const node = found[place];
      node.walked ??= [];
      if (!node.walked[level]) {
        const { levels } = await this.look(node);
        const state = levels.subarray(start, start + mean.length);
        node.walked[level] = [
          axes.map((axis) => axis.reduce((sum, weight, at) => sum + weight * (state[at] - mean[at]), 0)),
          Math.hypot(...state),
        ];
      }
      points.push(node.walked[level][0]);
      norms.push(node.walked[level][1]);
    }
    return { labels: ["", ...marks.map((mark) => (mark.ends ? "↵" : mark.text))], points, shares, norms, radii, layer: level, layers: bases.length };
  }

  async judged({ pairs }) {
    const found = [];
    for (const pair of pairs) {
      const sides = [];
      const unknown = new Set();
      for (const text of [pair.good, pair.bad]) {
        const { pieces, ids } = await this.read(text);
        if (!ids.length) throw new Refused(`no token that the model could read in “${text}”`);
        const whole = this.run.eos === null ? ids : [...ids, this.run.eos];
        const nodes = (await this.path(whole)).found.slice(1);
        for (const piece of pieces) if (piece.unknown) unknown.add(piece.text);
        sides.push({ ids: whole.join(), bits: nodes.reduce((sum, node) => sum + node.scored.bits, 0) });
      }
      const same = sides[0].ids === sides[1].ids;
      const [good, bad] = sides.map((side) => (same ? null : side.bits));
      found.push({ good, bad, correct: same ? null : good < bad, unknown: [...unknown] });
    }
    const right = found.filter((one) => one.correct !== null);
    return { pairs: found, accuracy: right.length ? right.filter((one) => one.correct).length / right.length : null };
  }
}

function entropy(logProbs) {
  return logProbs.reduce((sum, one) => sum - (one > -Infinity ? Math.exp(one) * one : 0), 0) / BITS;
}

function best(values, count) {
  return [...values.keys()].sort((a, b) => values[b] - values[a]).slice(0, count);
}

/** Numbers in [0, 1) from a seed (mulberry32). */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
