// A model of pairs in the browser: a graph that reads a source, one that is a step of its targets, and a beam search.

import { search } from "./beam.js";
import { Reading } from "./reading.js";
import { named, rowsOf, symbols, taken } from "./tensors.js";
import { Writing } from "./writing.js";

export class PairModel {
  constructor(facts, source, target) {
    Object.assign(this, { facts, source, target });
    const { reading, subwords, source_unk: unk } = facts;
    this.reading = new Reading({ reading, subwords, unk, words: facts.source });
    this.written = new Reading({ reading: facts.writing, words: facts.target, unk: facts.unk });
    this.answers = { translate: this.translated };
  }

  static async open(facts, _, graph) {
    return new PairModel(facts, await graph("source.onnx"), await graph("target.onnx"));
  }

  async translated({ text, beam, targets }) {
    const pieces = this.reading.read(text.split(/\s+/u).filter(Boolean).join(" "), []);
    const { eos, unk } = this.reading.rules;
    const source = pieces.map(({ token }) => (token === eos ? unk : token));
    const ids = source.map((token) => this.reading.ids.get(token) ?? this.facts.source_unk);
    const note = this.unread(ids);
    if (note) return { source: [], targets: [], note };
    const { reversed, longest, end, unk: forbidden, length_factors: factors, tie } = this.facts;
    const found = await search(await this.steps(reversed ? ids.toReversed() : ids), {
      size: Math.max(beam, targets), nbest: targets, limit: longest[ids.length], end, forbidden, factors, tie,
    });
    return { source, targets: found.map((one) => this.shown(one)), note: "" };
  }

  /** Why a source cannot be read; an empty line where it can. */
  unread(ids) {
    if (!ids.length) return "the source: an empty source";
    if (ids.length > this.facts.most_source) {
      return `the source: a source of ${ids.length} symbols, the limit is ${this.facts.most_source} (data.max_source)`;
    }
    return ids.every((id) => id === this.facts.source_unk)
      ? `the source: none of the ${ids.length} symbols is in the source vocabulary` : "";
  }

  /** A source is read; what `search` calls for each step of its targets. */
  async steps(ids) {
    const begun = await this.source.run({ symbols: symbols(ids) });
    const count = (prefix) => Object.keys(begun).filter((name) => name.startsWith(prefix)).length;
    const changing = count("state_");
    const memory = named(taken(begun, count("memory_"), "memory_"), "memory_");
    let state = taken(begun, changing, "state_");
    return async (read, rows) => {
      const before = state.map((one) => rowsOf(one, rows));
      const found = await this.target.run({ symbols: symbols(read), ...named(before), ...memory });
      state = taken(found, changing);
      const logProbs = split(found.log_probs);
      return { logProbs, attention: found.attention ? split(found.attention) : read.map(() => new Float32Array(0)) };
    };
  }

  shown({ symbols: ids, logProb, attention }) {
    const words = ids.map((id) => this.facts.target[id]);
    const writing = new Writing(this.written);
    const text = (words.map((word) => writing.add(word)).join("") + writing.end()).replace(/[\r\n]/gu, " ");
    const weights = attention.map((row) => (this.facts.reversed ? [...row].reverse() : [...row]));
    return { text, words, bits: -logProb / Math.LN2, attention: weights[0]?.length ? weights : [] };
  }
}

/** The rows of a tensor of two axes. */
function split({ data, dims: [rows, width] }) {
  return Array.from({ length: rows }, (_, row) => data.subarray(row * width, (row + 1) * width));
}
