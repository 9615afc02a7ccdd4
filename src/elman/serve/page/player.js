// Plays the pitches of steps by WebAudio, a held pitch as one tone.

export class Player {
  constructor(stepSeconds) {
    this.stepSeconds = stepSeconds;
    this.speed = 1;
    this.playing = false;
    this.told = () => {};
    this.sounding = [];
  }

  play(steps) {
    this.stop();
    if (!steps.length) return;
    this.context ||= new AudioContext();
    this.context.resume();
    const seconds = this.stepSeconds / this.speed;
    const start = this.context.currentTime + 0.08;
    const master = this.context.createGain();
    master.gain.value = 0.22;
    master.connect(this.context.destination);
    this.sounding = held(steps).map(([from, to, pitch]) =>
      this.tone(master, pitch, start + from * seconds, start + to * seconds));
    this.playing = true;
    const follow = () => {
      const step = Math.floor((this.context.currentTime - start) / seconds);
      if (!this.playing) return;
      if (step >= steps.length) {
        this.stop();
        return;
      }
      this.told(Math.max(0, step));
      requestAnimationFrame(follow);
    };
    follow();
  }

  tone(master, pitch, from, to) {
    const tone = this.context.createOscillator();
    const gain = this.context.createGain();
    tone.type = "triangle";
    tone.frequency.value = 440 * 2 ** ((pitch - 69) / 12);
    gain.gain.setValueAtTime(0, from);
    gain.gain.linearRampToValueAtTime(0.6, from + 0.015);
    gain.gain.exponentialRampToValueAtTime(0.12, Math.max(from + 0.03, to - 0.03));
    gain.gain.linearRampToValueAtTime(0, to + 0.06);
    tone.connect(gain).connect(master);
    tone.start(from);
    tone.stop(to + 0.08);
    return tone;
  }

  stop() {
    for (const tone of this.sounding) {
      try {
        tone.stop();
      } catch {
        // it has not begun
      }
    }
    this.sounding = [];
    this.playing = false;
    this.told(null);
  }
}

/** Held notes of steps: [first step, end, pitch]. */
export function held(steps) {
  const begun = new Map();
  const found = [];
  [...steps, []].forEach((notes, step) => {
    for (const [pitch, from] of begun) {
      if (!notes.includes(pitch)) {
        found.push([from, step, pitch]);
        begun.delete(pitch);
      }
    }
    for (const pitch of notes) if (!begun.has(pitch)) begun.set(pitch, step);
  });
  return found;
}
