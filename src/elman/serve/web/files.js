// The files of the page as they were exported: files.json names each with its length and CRC-32, and none is used that
// differs. Checksums of the browser (crypto.subtle) are lacking where a page comes by http.

import { Refused } from "./backend.js";

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});
const AGAIN = "copy the whole folder again, or export it again";

/** The CRC-32 of bytes, as zlib has it. */
export function crc32(bytes) {
  let rest = 0xffffffff;
  for (let at = 0; at < bytes.length; at += 1) rest = TABLE[(rest ^ bytes[at]) & 255] ^ (rest >>> 8);
  return (rest ^ 0xffffffff) >>> 0;
}

let listed = null;

/** The list of files; a failure is forgotten, so that it can be tried again. */
function list() {
  listed ??= listing().catch((error) => {
    listed = null;
    throw error;
  });
  return listed;
}

async function listing() {
  try {
    const found = Object.entries(JSON.parse(new TextDecoder().decode(await fetched("files.json", "no-cache"))));
    if (found.length && found.every(([, one]) => one.length === 2 && one.every(Number.isInteger))) return new Map(found);
  } catch (error) {
    if (error instanceof Refused) throw error;
  }
  throw new Refused(`files.json is damaged; ${AGAIN}`);
}

/** The bytes of a file of the page, which are those that were exported; a stale copy in the cache is fetched anew. */
export async function file(address) {
  const expected = (await list()).get(address);
  if (!expected) throw new Refused(`${address} is not listed in files.json; ${AGAIN}`);
  let found = null;
  for (const cache of ["default", "reload"]) {
    const bytes = await fetched(address, cache);
    found = [bytes.length, crc32(bytes)];
    if (found.join() === expected.join()) return bytes;
  }
  const [length, wanted] = [found[0], expected[0]];
  const how = length === wanted ? "its bytes are others" : `${length} bytes instead of ${wanted}`;
  throw new Refused(`${address} is damaged (${how}); ${AGAIN}`);
}

/** The value of a JSON file. */
export const json = async (address) => JSON.parse(new TextDecoder().decode(await file(address)));

/** Checks every script of the page, before one is run that computes. */
export async function scripts() {
  const names = [...(await list()).keys()].filter((name) => /\.m?js$/u.test(name));
  await Promise.all(names.map(file));
}

async function fetched(address, cache) {
  let line = "";
  try {
    const answer = await fetch(address, { cache });
    if (answer.ok) return new Uint8Array(await answer.arrayBuffer());
    line = `is missing (status ${answer.status})`;
  } catch (error) {
    line = `cannot be fetched (${error.message})`;
  }
  throw new Refused(`${address} ${line}; ${AGAIN}`);
}
