// Draws from a distribution, and what is said of one. Log-probabilities are natural, entropies in bits.

const BITS = Math.LN2;

/** The shares of draws: temperature, the k most probable, those that together reach p; `forbidden` is never drawn. */
export function weighed(logProbs, { temperature, top_k: k, top_p: p }, forbidden = null) {
  const scores = Float64Array.from(logProbs);
  if (forbidden !== null) scores[forbidden] = -Infinity;
  const greatest = scores.reduce((most, one, id) => (one > scores[most] ? id : most), 0);
  if (temperature === 0) return scores.map((_, id) => (id === greatest ? 1 : 0));
  let shares = scores.map((one) => Math.exp((one - scores[greatest]) / temperature));
  const order = k !== null || p !== null ? [...shares.keys()].sort((a, b) => shares[b] - shares[a]) : [];
  if (k !== null && k < shares.length) {
    for (const id of order.slice(k)) shares[id] = 0;
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

/** A number drawn with these shares. */
export function drawn(shares, random) {
  let [left, found] = [random(), -1];
  for (let at = 0; at < shares.length && left >= 0; at += 1) {
    if (shares[at] > 0) found = at;
    left -= shares[at];
  }
  return found;
}

export function entropy(logProbs) {
  return logProbs.reduce((sum, one) => sum - (one > -Infinity ? Math.exp(one) * one : 0), 0) / BITS;
}

/** The numbers of the greatest values, greatest first. */
export function best(values, count) {
  return [...values.keys()].sort((a, b) => values[b] - values[a]).slice(0, count);
}

/** log sum exp. */
export function logSum(values) {
  const most = Math.max(...values);
  return most === -Infinity ? most : most + Math.log(values.reduce((sum, one) => sum + Math.exp(one - most), 0));
}

/** Numbers in [0, 1) from a seed (mulberry32). */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const freshSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];
