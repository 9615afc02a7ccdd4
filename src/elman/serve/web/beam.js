// The most probable targets of a source by beam search, as src/elman/decoding/beam.py finds them.

/**
 * Hypotheses {symbols, logProb, score, attention}, best first. `step(symbols, rows)` reads one symbol of each
 * hypothesis, which continues the hypothesis `rows[i]` of the step before. It gives {logProbs, attention}, a row each.
 * `limit` symbols at most; a log-probability times the factor of a length is its score, and of ranks whose difference
 * is less than `tie` the first counts.
 */
export async function search(step, { size, nbest, limit, end, forbidden, factors, tie }) {
  let alive = [{ symbols: [], total: 0, attention: [], row: 0 }];
  const ended = [];
  const beaten = () => ended.length >= size && alive[0].total <= Math.max(...ended.map((one) => one.logProb));
  while (alive.length && !beaten()) {
    const last = alive.map((one) => one.symbols.at(-1) ?? end);
    const { logProbs, attention } = await step(last, alive.map((one) => one.row));
    const mustEnd = alive[0].symbols.length >= limit;
    const allowed = (symbol) => symbol !== forbidden && (!mustEnd || symbol === end);
    const found = candidates(alive, logProbs, 2 * size, allowed, tie);
    const looks = alive.map((one, row) => [...one.attention, attention[row]]);
    const next = [];
    found.forEach(({ row, symbol, total }, place) => {
      if (symbol !== end) {
        const symbols = [...alive[row].symbols, symbol];
        if (next.length < size) next.push({ symbols, total, attention: looks[row], row });
      } else if (place < size) {
        const { symbols } = alive[row];
        const score = total * factors[symbols.length];
        ended.push({ symbols, logProb: total, score, attention: looks[row] });
      }
    });
    alive = next;
  }
  return ended.sort((one, other) => other.score - one.score).slice(0, nbest);
}

/** The `count` best continuations, best first; of equal ones the first. */
function candidates(alive, logProbs, count, allowed, tie) {
  const found = [];
  alive.forEach(({ total: before }, row) => {
    const values = logProbs[row];
    for (let symbol = 0; symbol < values.length; symbol += 1) {
      const total = before + values[symbol];
      if (total === -Infinity || !allowed(symbol)) continue;
      const rank = total - tie * (row * values.length + symbol);
      if (found.length === count && rank <= found.at(-1).rank) continue;
      let at = found.length;
      while (at && found[at - 1].rank < rank) at -= 1;
      found.splice(at, 0, { row, symbol, total, rank });
      if (found.length > count) found.pop();
    }
  });
  return found;
}
