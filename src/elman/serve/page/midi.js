// Standard MIDI files of the steps of a roll, written and read: one quarter is `quarter` steps.

import { held } from "./player.js";

const TICKS = 480;  // of a quarter
const DRUMS = 9;  // their channel

/** A file of the notes of steps, of one track at a tempo (quarters per minute). */
export function written(steps, quarter, tempo) {
  const ticks = TICKS / quarter;
  const events = held(steps).flatMap(([from, to, pitch]) => [[from * ticks, 0x90, pitch, 80], [to * ticks, 0x80, pitch, 0]]);
  events.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  const micro = Math.round(6e7 / tempo);
  const track = [0, 0xff, 0x51, 3, (micro >> 16) & 255, (micro >> 8) & 255, micro & 255];
  let now = 0;
  for (const [at, status, pitch, velocity] of events) {
    track.push(...length(Math.round(at) - now), status, pitch, velocity);
    now = Math.round(at);
  }
  track.push(...length(Math.max(0, Math.round(steps.length * ticks) - now)), 0xff, 0x2f, 0);
  const head = [...ascii("MThd"), ...four(6), 0, 0, 0, 1, TICKS >> 8, TICKS & 255];
  return Uint8Array.from([...head, ...ascii("MTrk"), ...four(track.length), ...track]);
}

/** The steps of a file, its tempo, and how many notes were left out: drums, and what is outside the range of keys. */
export function read(bytes, quarter, [lowest, highest]) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tag = (at) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (bytes.length < 14 || tag(0) !== "MThd") throw new Error("this is no MIDI file");
  const ticks = view.getUint16(12);
  if (ticks & 0x8000 || !ticks) throw new Error("this MIDI file counts in film frames, not in quarters");
  const steps = [];
  let [tempo, left, at] = [120, 0, 8 + view.getUint32(4)];
  const sound = (from, to, pitch) => {
    if (pitch < lowest || pitch > highest) { left += 1; return; }
    const [first, end] = [from, to].map((tick) => Math.round((tick * quarter) / ticks));
    for (let step = first; step < Math.max(end, first + 1); step += 1) {
      while (steps.length <= step) steps.push([]);
      if (!steps[step].includes(pitch)) steps[step].push(pitch);
    }
  };
  while (at + 8 <= bytes.length) {
    const end = Math.min(bytes.length, at + 8 + view.getUint32(at + 4));
    if (tag(at) === "MTrk") {
      const open = new Map();
      let [place, now, status] = [at + 8, 0, 0];
      const number = () => {
        let value = 0;
        for (let count = 0; count < 4 && place < end; count += 1) {
          const byte = bytes[place];
          place += 1;
          value = (value << 7) | (byte & 127);
          if (byte < 128) break;
        }
        return value;
      };
      while (place < end) {
        now += number();
        if (bytes[place] & 128) { status = bytes[place]; place += 1; }
        if (status === 0xff || status === 0xf0 || status === 0xf7) {
          const kind = status === 0xff ? bytes[place] : 0;
          if (status === 0xff) place += 1;
          const size = number();
          if (kind === 0x51 && size === 3 && !now) tempo = 6e7 / ((bytes[place] << 16) | (bytes[place + 1] << 8) | bytes[place + 2]);
          place += size;
          continue;
        }
        const [what, channel] = [status >> 4, status & 15];
        const [pitch, velocity] = [bytes[place], bytes[place + 1]];
        place += what === 0xc || what === 0xd ? 1 : 2;
        if (what !== 9 && what !== 8) continue;
        if (channel === DRUMS) { left += what === 9 && velocity > 0 ? 1 : 0; continue; }
        const key = channel * 128 + pitch;
        if (open.has(key)) sound(open.get(key), now, pitch);
        open.delete(key);
        if (what === 9 && velocity > 0) open.set(key, now);
      }
      for (const [key, from] of open) sound(from, now, key % 128);
    }
    at = end;
  }
  return { steps: steps.map((notes) => notes.sort((a, b) => a - b)), tempo, left };
}

const ascii = (text) => [...text].map((letter) => letter.charCodeAt(0));
const four = (value) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255);

/** A length of the format: seven bits a byte, the highest first. */
function length(value) {
  const found = [value & 127];
  for (let rest = value >> 7; rest; rest >>= 7) found.unshift((rest & 127) | 128);
  return found;
}
