// Text to subwords, as the library sentencepiece cuts it: the unigram model, and byte-pair encoding. What has no piece
// is spelt in bytes. Kudo & Richardson (2018), SentencePiece; the rules are those of its optimised encoders.

export const SPACE = "\u2581";
const UNKNOWN_PENALTY = 10;
const NAMED = /^<0x([0-9A-F]{2})>$/;
const encoder = new TextEncoder();

/** The bytes that a piece stands for, a name such as `<0xE3>` among them. */
export function pieceBytes(piece) {
  const named = NAMED.exec(piece);
  return named ? Uint8Array.of(Number.parseInt(named[1], 16)) : encoder.encode(piece.replaceAll(SPACE, " "));
}

const nameOf = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
const spelt = (text) => Array.from(encoder.encode(text), nameOf);

export class Subwords {
  constructor({ kind, pieces, scores }) {
    this.scores = new Map(pieces.map((piece, at) => [piece, Math.fround(scores[at])]));
    this.cut = kind === "bpe" ? this.merged : this.likeliest;
    this.unknown = Math.fround(scores.reduce((least, one) => Math.min(least, one), Infinity) - UNKNOWN_PENALTY);
    this.beginnings = new Map();
    for (const piece of pieces) {
      let node = this.beginnings;
      for (const unit of piece.split("")) {
        if (!node.has(unit)) node.set(unit, new Map());
        node = node.get(unit);
      }
      node.set("", this.scores.get(piece));
    }
  }

  /** The pieces of a line; a part that they would not restore exactly is spelt in bytes. */
  encode(text) {
    return text.split(SPACE).flatMap((part, at) => (at ? [...spelt(SPACE), ...this.exact(part)] : this.exact(part)));
  }

  exact(text) {
    const parts = this.cut([...text.replaceAll(" ", SPACE)]);
    const pieces = parts.flatMap((piece) => (this.scores.has(piece) ? [piece] : spelt(piece)));
    const [restored, right] = [pieces.flatMap((piece) => [...pieceBytes(piece)]), encoder.encode(text)];
    const same = restored.length === right.length && restored.every((byte, at) => byte === right[at]);
    return same && !pieces.includes("<eos>") ? pieces : spelt(text);
  }

  /** The pieces whose scores have the greatest sum (Kudo 2018), by Viterbi's algorithm in single precision. */
  likeliest(letters) {
    const score = new Float32Array(letters.length + 1);
    const start = new Int32Array(letters.length + 1).fill(-1);
    const reach = (end, from, sum) => {
      if (start[end] >= 0 && !(sum > score[end])) return;
      score[end] = sum;
      start[end] = from;
    };
    for (let from = 0; from < letters.length; from += 1) {
      let node = this.beginnings;
      let single = false;
      for (let end = from + 1; end <= letters.length; end += 1) {
        for (const unit of letters[end - 1].split("")) node = node?.get(unit);
        if (!node) break;
        const found = node.get("");
        if (found === undefined) continue;
        reach(end, from, Math.fround(found + score[from]));
        single ||= end === from + 1;
      }
      if (!single) reach(from + 1, from, Math.fround(this.unknown + score[from]));
    }
    const pieces = [];
    for (let end = letters.length; end > 0; end = start[end]) pieces.push(letters.slice(start[end], end).join(""));
    return pieces.reverse();
  }

  /** Letters of which the pair that makes up the piece of the greatest score is joined, the first of equal ones. */
  merged(letters) {
    const parts = letters.map((text, at) => ({ text, before: at - 1, after: at + 1 < letters.length ? at + 1 : -1 }));
    const precedes = (one, other) => (one.score === other.score ? one.left < other.left : one.score > other.score);
    const waiting = new Heap(precedes);
    const offer = (left, right) => {
      if (left < 0 || right < 0) return;
      const text = parts[left].text + parts[right].text;
      const score = this.scores.get(text);
      if (score !== undefined) waiting.push({ left, right, score, size: text.length });
    };
    for (let at = 1; at < letters.length; at += 1) offer(at - 1, at);
    for (let top = waiting.pop(); top; top = waiting.pop()) {
      const [left, right] = [parts[top.left], parts[top.right]];
      if (!left.text || !right.text || left.text.length + right.text.length !== top.size) continue;
      left.text += right.text;
      left.after = right.after;
      if (right.after >= 0) parts[right.after].before = top.left;
      right.text = "";
      offer(left.before, top.left);
      offer(top.left, left.after);
    }
    return parts.map((part) => part.text).filter(Boolean);
  }
}

/** Things of which the first by `precedes` can be taken. */
class Heap {
  constructor(precedes) {
    this.precedes = precedes;
    this.items = [];
  }

  push(item) {
    const { items } = this;
    let at = items.push(item) - 1;
    while (at && this.precedes(items[at], items[(at - 1) >> 1])) at = this.swap(at, (at - 1) >> 1);
  }

  pop() {
    const { items } = this;
    if (items.length < 2) return items.pop();
    const top = items[0];
    items[0] = items.pop();
    for (let at = 0; ;) {
      let first = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < items.length && this.precedes(items[child], items[first])) first = child;
      }
      if (first === at) return top;
      at = this.swap(at, first);
    }
  }

  swap(one, other) {
    [this.items[one], this.items[other]] = [this.items[other], this.items[one]];
    return other;
  }
}
