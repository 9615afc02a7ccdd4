// The backend that `elman serve` is: questions by POST, streams as server-sent events.

import { Backend, Refused } from "./backend.js";

export class Server extends Backend {
  constructor() {
    super();
    const random = crypto.getRandomValues(new Uint8Array(16));
    this.tab = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  async open() {
    const answer = await fetch("api/runs");
    if (!answer.ok) throw await refusal(answer);
    return answer.json();
  }

  async ask(operation, question, signal) {
    const answer = await this.post(operation, question, signal);
    return answer.json();
  }

  async *events(operation, question, signal) {
    const answer = await this.post(operation, question, signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const blocks = (held + value).split("\n\n");
        held = blocks.pop();
        for (const block of blocks) {
          const data = block.split("\n").find((line) => line.startsWith("data: "));
          if (data) yield JSON.parse(data.slice(6));
        }
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  leave() {
    const body = new Blob([JSON.stringify({ tab: this.tab })], { type: "application/json" });
    navigator.sendBeacon("api/leave", body);
  }

  async post(operation, question, signal) {
    let answer;
    try {
      answer = await fetch(`api/${operation}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ tab: this.tab, ...question }),
        signal,
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused("The server does not answer; is `elman serve` still running?", 3);
    }
    if (!answer.ok) throw await refusal(answer);
    return answer;
  }
}

async function refusal(answer) {
  const again = Number(answer.headers.get("retry-after")) || null;
  const said = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  return new Refused(said.error, again);
}
