// Frames of notes given a context, as src/elman/network/output/{bernoulli,nade}.py have them: independent notes, or
// one after another (NADE), mixed over contexts. A frame is an array of zeros and ones, pitches from low to high.

import { drawn, logSum } from "./sampling.js";

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
/** log sigmoid(x), without overflow. */
const logSigmoid = (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)));

export class Notes {
  /** `shapes` of the arrays by name, in their order in `file`. */
  constructor(shapes, file) {
    let at = 0;
    this.arrays = {};
    for (const [name, shape] of Object.entries(shapes)) {
      const size = shape.reduce((product, one) => product * one, 1);
      this.arrays[name] = { data: new Float32Array(file, 4 * at, size), rows: shape[0], width: shape[1] ?? 1 };
      at += size;
    }
    this.pitches = this.arrays.visible.rows;
    this.kept = new WeakMap();
  }

  /** The log-probability of a frame under contexts [K, D] of such log-weights [K]. */
  logProb(contexts, logPrior, frame) {
    const note = (pitch) => frame[pitch];
    return logSum([...logPrior].map((prior, k) => prior + this.along(this.given(contexts, k), note).logProb));
  }

  /** A frame that is drawn: first a component, then its notes. */
  draw(contexts, logPrior, temperature, random) {
    const component = logPrior.length > 1 ? drawn([...logPrior].map(Math.exp), random) : 0;
    const on = temperature === 0 ? (odds) => odds > 0 : (odds) => random() < sigmoid(odds / temperature);
    const note = (_, odds) => Number(on(odds));
    return this.along(this.given(contexts, component), note).frame;
  }

  /** What the notes under one context are drawn from; kept with the contexts, since many draws share them. */
  given(contexts, component) {
    if (!this.kept.has(contexts)) this.kept.set(contexts, []);
    const kept = this.kept.get(contexts);
    kept[component] ??= this.under(contexts, component);
    return kept[component];
  }

  under({ data, dims }, component) {
    const width = dims[2];
    const context = data.subarray(component * width, (component + 1) * width);
    const { visible, visible_bias: bias, hidden, hidden_bias: hiddenBias } = this.arrays;
    const logOdds = product(visible, context, bias.data);
    return { logOdds, hidden: hidden ? product(hidden, context, hiddenBias.data) : null };
  }

  /** Notes one after another, each chosen by `choose` from its log-odds given those before it. */
  along({ logOdds, hidden }, choose) {
    const { given, weight } = this.arrays;
    const frame = new Uint8Array(this.pitches);
    const sums = hidden ? Float64Array.from(hidden) : null;
    let units = sums?.map(sigmoid);
    let logProb = 0;
    for (let pitch = 0; pitch < this.pitches; pitch += 1) {
      const odds = logOdds[pitch] + (units ? dot(weight, pitch, units) : 0);
      frame[pitch] = choose(pitch, odds);
      logProb += logSigmoid(frame[pitch] ? odds : -odds);
      if (!frame[pitch] || !sums) continue;
      for (let unit = 0; unit < sums.length; unit += 1) sums[unit] += given.data[pitch * given.width + unit];
      units = sums.map(sigmoid);
    }
    return { frame, logProb };
  }
}

function dot({ data, width }, row, vector) {
  let sum = 0;
  for (let at = 0; at < width; at += 1) sum += data[row * width + at] * vector[at];
  return sum;
}

const product = (matrix, vector, bias) =>
  Float64Array.from({ length: matrix.rows }, (_, row) => bias[row] + dot(matrix, row, vector));
