// A model of text in the browser: what the panels ask, computed step by step.

import { Refused } from "./backend.js";
import { Reading } from "./reading.js";
import { best, drawn, entropy, freshSeed, generator, weighed } from "./sampling.js";
import { beginning, named, once, symbols, taken } from "./tensors.js";
import { Writing } from "./writing.js";

const KEPT = 48;
const NODES = 6000;
const BITS = Math.LN2;

/** A prefix of a text: how its last symbol was predicted, and the state before that symbol is read. */
class Node {
  constructor(symbol, state, scored = null) {
    Object.assign(this, { symbol, state, scored, children: new Map(), after: null });
  }
}

export class TextModel {
  constructor(facts, network, read) {
    this.facts = facts;
    this.network = network;
    this.file = read;
    this.reading = new Reading(facts);
    this.recent = [];
    this.answers = { score: this.scores, next: this.nexts, components: this.mixed, states: this.walks,
      pairs: this.judged, neighbours: this.nearest };
    this.begin();
  }

  /** `read` opens a file of the model's folder as bytes; `graph` a graph. */
  static async open(facts, read, graph) { return new TextModel(facts, await graph("model.onnx"), read); }

  begin() {
    this.root = new Node(this.facts.first, beginning(this.facts.states));
    this.nodes = 1;
  }

  /** What the graph gives after the symbol of a prefix; the last ones are kept. */
  look(node) { return once(node, () => this.step(node)); }

  async step(node) {
    const found = await this.network.run({ symbols: symbols([node.symbol]), ...named(node.state) });
    const logProbs = found.log_probs.data;
    node.entropy = entropy(logProbs);
    this.recent.push(node);
    if (this.recent.length > KEPT) this.recent.shift().after = null;
    return { logProbs, levels: found.levels.data, state: taken(found, node.state.length),
      prior: found.prior?.data ?? null, each: found.each?.data ?? null };
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
        const space = this.reading.spaces.reduce((sum, one) => sum + Math.exp(logProbs[one]), 0);
        const scored = { bits: -logProbs[id] / BITS, rank, entropy: node.entropy, space: -Math.log2(space) };
        child = node.children.get(id) ?? new Node(id, state, scored);
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

  shown(id) { return this.reading.shown(this.facts.words[id]); }

  async scores({ text }) {
    const { pieces, found, computed } = await this.read(text);
    const scored = found.slice(1).map((node) => node.scored);
    const bits = total(scored);
    const strange = [...new Set(pieces.filter((piece) => piece.unknown).map((piece) => piece.text))];
    return {
      kind: "text", marks: this.reading.marks(pieces, scored), tokens: scored.length, bits, computed, adapted: false,
      perplexity: scored.length ? 2 ** (bits / scored.length) : null,
      notes: strange.length ? [`not in the vocabulary: ${strange.slice(0, 8).join(", ")}`] : [],
    };
  }

  /** The words of a text and their bits, and the bits of all its tokens. */
  async byWord(text) {
    const { pieces, found } = await this.read(text);
    const scored = found.slice(1).map((node) => node.scored);
    return { words: this.reading.wordsOf(pieces, scored), bits: total(scored) };
  }

  /** Whether a blank ends the text before a position, so that in subwords it begins the next word and is not read. */
  isHeld(ids, position, after = []) {
    const { blanks, ids: numbers, rules } = this.reading;
    if (!blanks.length || (position ?? ids.length) < ids.length || ids.length < 2) return false;
    return ids.at(-1) === numbers.get(rules.marker) && (!after.length || blanks.includes(after[0]));
  }

  /** The log-probabilities given that a symbol that begins with a blank comes. */
  spaced(logProbs) {
    const all = Math.log(this.reading.blanks.reduce((sum, id) => sum + Math.exp(logProbs[id]), 0));
    const found = new Float64Array(logProbs.length).fill(-Infinity);
    for (const id of this.reading.blanks) found[id] = logProbs[id] - all;
    return found;
  }

  async nexts({ text, position, count, ...settings }) {
    const { ids, found } = await this.read(text, position);
    const held = this.isHeld(ids, position);
    const looked = await this.look(found.at(held ? -2 : -1));
    const logProbs = held ? this.spaced(looked.logProbs) : looked.logProbs;
    const shares = weighed(logProbs, settings, this.facts.unk);
    const candidate = (id) => ({ token: this.shown(id), id, probability: Math.exp(logProbs[id]), drawn: shares[id] });
    const words = best(logProbs, count).map(candidate);
    const at = position ?? ids.length;
    return {
      kind: "text", words, entropy: entropy(logProbs), position: at,
      actual: at < ids.length ? candidate(ids[at]) : null,
      left: Math.max(0, 1 - words.reduce((sum, word) => sum + word.probability, 0)),
    };
  }

  async *draw({ text, position, after, drawn: count, seed: given, ...settings }, signal) {
    const { ids } = await this.read(text, position);
    const held = this.isHeld(ids, position, after);
    const prompt = [...ids.slice(0, held ? -1 : position ?? ids.length), ...after];
    const writing = new Writing(this.reading);
    for (const id of prompt) writing.add(this.facts.words[id]);
    let node = (await this.path(prompt)).found.at(-1);
    const atEnd = !after.length && (position ?? ids.length) === ids.length;
    const blank = atEnd && (held || (!this.reading.rules.spelt && text.endsWith(" "))); // which no word repeats
    const seed = given ?? freshSeed();
    const random = generator(seed);
    yield { event: "begin", seed };
    for (let at = 0; at < count; at += 1) {
      await new Promise((resolve) => { setTimeout(resolve); });
      signal?.throwIfAborted();
      const { logProbs: all, state } = await this.look(node);
      const begins = held && !after.length && at === 0;
      const logProbs = begins ? this.spaced(all) : all;
      const id = drawn(weighed(logProbs, settings, this.facts.unk), random);
      node = new Node(id, state);
      const added = writing.add(this.facts.words[id]);
      const shown = blank && at === 0 && added.startsWith(" ") ? added.slice(1) : added;
      yield { event: "token", id, token: this.shown(id), text: shown, bits: -logProbs[id] / BITS };
    }
    yield { event: "end", reason: "length" };
  }

  async mixed({ text, position, count }) {
    const { ids, found } = await this.read(text, position);
    const { prior, each } = await this.look(found.at(-1));
    const size = this.facts.words.length;
    const likely = (probabilities) => best(probabilities, count).map((id) =>
      ({ token: this.shown(id), probability: probabilities[id] }));
    const layers = this.facts.component_layers;
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
      for (const part of own) {
        part.probabilities.forEach((one, id) => { together[id] += (part.weight * one) / weight; });
      }
      return { layer, weight, words: likely(together) };
    });
    const uncertainty = parts.reduce((sum, { weight }) => sum - (weight > 0 ? weight * Math.log(weight) : 0), 0);
    return { components, layers: shares, in_use: Math.exp(uncertainty), position: position ?? ids.length };
  }

  async walks({ text, layer }) {
    const { bases, radii } = this.facts;
    const level = layer ?? bases.length - 1;
    const start = bases.slice(0, level).reduce((sum, basis) => sum + basis.mean.length, 0);
    const { mean, axes, shares } = bases[level];
    const { pieces, found } = await this.read(text);
    const scored = found.slice(1).map((node) => node.scored);
    const marks = this.reading.marks(pieces, scored).filter((mark) => mark.at !== null).slice(-120);
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
    const labels = ["", ...marks.map((mark) => (mark.ends ? "↵" : mark.text))];
    return { labels, points, shares, norms, radii, layer: level, layers: bases.length };
  }

  async judged({ pairs }) {
    const found = [];
    for (const pair of pairs) {
      const sides = [];
      const unknown = new Set();
      for (const text of [pair.good, pair.bad]) {
        const { pieces, ids } = await this.read(text);
        if (!ids.length) throw new Refused(`no token that the model could read in “${text}”`);
        const whole = this.facts.eos === null ? ids : [...ids, this.facts.eos];
        const nodes = (await this.path(whole)).found.slice(1);
        for (const piece of pieces) if (piece.unknown) unknown.add(piece.text);
        sides.push({ ids: whole.join(), bits: total(nodes.map((node) => node.scored)) });
      }
      const same = sides[0].ids === sides[1].ids;
      const [good, bad] = sides.map((side) => (same ? null : side.bits));
      found.push({ good, bad, correct: same ? null : good < bad, unknown: [...unknown] });
    }
    const right = found.filter((one) => one.correct !== null);
    return { pairs: found, accuracy: right.length ? right.filter((one) => one.correct).length / right.length : null };
  }

  async nearest({ word, count }) {
    const wanted = this.reading.rules.lowercase ? word.toLowerCase() : word;
    const own = this.reading.ids.get(wanted);
    if (own === undefined) return { word: wanted, known: false, neighbours: [] };
    this.vectors ??= this.file("vectors.bin").then((bytes) => unitVectors(new Int8Array(bytes), this.facts.vectors));
    const vectors = await this.vectors;
    const cosines = vectors.map((one) => one.reduce((sum, value, at) => sum + value * vectors[own][at], 0));
    cosines[own] = -Infinity;
    const neighbours = best(cosines, Math.min(count, cosines.length - 1)).map((id) =>
      ({ word: this.shown(id), cosine: Math.min(1, cosines[id]) }));
    return { word: wanted, known: true, neighbours };
  }
}

/** A text under two models; where they read other words, or one does not know a word, there is no difference. */
export async function compared(first, second, text) {
  const [left, right] = [await first.byWord(text), await second.byWord(text)];
  const folded = ({ words }) => JSON.stringify(words.map(([word]) => word.toLowerCase()));
  const same = folded(left) === folded(right);
  const words = left.words.map(([word, bits, lacking], at) => {
    const [, other, also] = same ? right.words[at] : [word, null, false];
    const unknown = lacking || also;
    const difference = bits === null || other === null || unknown ? null : other - bits;
    return { word, first: bits, second: other, difference, unknown };
  });
  const unknown = [left, right].map((side) => side.words.filter(([, , lacking]) => lacking).length);
  return { words, first: left.bits, second: right.bits, same_words: same, unknown };
}

const total = (scored) => scored.reduce((sum, one) => sum + one.bits, 0);

/** Rows of whole numbers as vectors of length one. */
function unitVectors(numbers, size) {
  return Array.from({ length: numbers.length / size }, (_, row) => {
    const vector = Float32Array.from(numbers.subarray(row * size, (row + 1) * size));
    const norm = Math.hypot(...vector) || 1;
    return vector.map((one) => one / norm);
  });
}
