// A model of music in the browser: a graph up to the contexts of notes, and the notes given them. A piece is the MIDI
// pitches that sound at each of its steps, and begins after silence.

import { Notes } from "./notes.js";
import { Refused } from "./backend.js";
import { freshSeed, generator } from "./sampling.js";
import { beginning, floats, named, once, taken } from "./tensors.js";

/** Next steps that are drawn to see how often each pitch sounds. */
const DRAWS = 200;
const NODES = 4000;

export class MusicModel {
  constructor(facts, network, notes) {
    Object.assign(this, { facts, network, notes });
    this.answers = { score: this.scores, next: this.nexts };
    this.begin();
  }

  static async open(facts, read, graph) {
    return new MusicModel(facts, await graph("model.onnx"), new Notes(facts.choice, await read("choice.bin")));
  }

  begin() {
    const frame = new Uint8Array(this.notes.pitches);
    this.root = { frame, state: beginning(this.facts.states), bits: null, children: new Map() };
    this.nodes = 1;
  }

  /** The contexts after a step, and the state. */
  look(node) { return once(node, () => this.step(node)); }

  async step({ frame, state }) {
    const frames = floats(Float32Array.from(frame), [1, frame.length]);
    const found = await this.network.run({ frames, ...named(state) });
    return { contexts: found.contexts, logPrior: found.log_prior.data, state: taken(found, state.length) };
  }

  /** The beginning and every step of a piece, each scored; only new ones are computed. */
  async path(roll) {
    if (this.nodes + roll.length > NODES) this.begin();
    const found = [this.root];
    let computed = 0;
    for (const [at, pitches] of roll.entries()) {
      const node = found.at(-1);
      const key = pitches.join();
      if (!node.children.has(key)) {
        const frame = this.frame(pitches, at);
        const { contexts, logPrior, state } = await this.look(node);
        const bits = -this.notes.logProb(contexts, logPrior, frame) / Math.LN2;
        node.children.set(key, { frame, state, bits, children: new Map() });
        this.nodes += 1;
        computed += 1;
      }
      found.push(node.children.get(key));
    }
    return { found, computed };
  }

  frame(pitches, at) {
    const frame = new Uint8Array(this.notes.pitches);
    for (const pitch of pitches) {
      const place = pitch - this.facts.lowest;
      if (!(place >= 0 && place < frame.length)) {
        throw new Refused(`step ${at + 1}: note ${pitch} is outside the ${frame.length} pitches`);
      }
      frame[place] = 1;
    }
    return frame;
  }

  sounding(frame) {
    return [...frame.keys()].filter((place) => frame[place]).map((place) => place + this.facts.lowest);
  }

  async scores({ roll }) {
    const { found, computed } = await this.path(roll);
    const steps = found.slice(1).map(({ frame, bits }) => ({ notes: this.sounding(frame), bits }));
    return { kind: "music", steps, bits: steps.reduce((sum, step) => sum + step.bits, 0), computed };
  }

  /** How often each pitch sounds in the step at a position, by draws with a fixed seed. */
  async nexts({ roll, position, temperature }) {
    const { found } = await this.path(roll.slice(0, position ?? roll.length));
    const { contexts, logPrior } = await this.look(found.at(-1));
    const counts = new Uint32Array(this.notes.pitches);
    const random = generator(0);
    for (let draw = 0; draw < DRAWS; draw += 1) {
      this.notes.draw(contexts, logPrior, temperature, random).forEach((on, place) => { counts[place] += on; });
    }
    const pitches = this.sounding(counts);
    const shares = pitches.map((pitch) => counts[pitch - this.facts.lowest] / DRAWS);
    return { kind: "music", pitches, shares, draws: DRAWS };
  }

  async *draw({ roll, after_roll: after, position, drawn, temperature, seed: given }, signal) {
    let node = (await this.path([...roll.slice(0, position ?? roll.length), ...after])).found.at(-1);
    const seed = given ?? freshSeed();
    const random = generator(seed);
    yield { event: "begin", seed };
    for (let at = 0; at < drawn; at += 1) {
      await new Promise((resolve) => { setTimeout(resolve); });
      signal?.throwIfAborted();
      const { contexts, logPrior, state } = await this.look(node);
      const frame = this.notes.draw(contexts, logPrior, temperature, random);
      node = { frame, state, children: new Map() };
      yield { event: "step", notes: this.sounding(frame) };
    }
    yield { event: "end", reason: "length" };
  }
}
