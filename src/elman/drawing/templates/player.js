"use strict";
for (const button of document.querySelectorAll("button.play")) {
  const step = Number(button.dataset.step);
  const notes = button.dataset.notes.split(" ").filter(Boolean).map((note) => note.split(",").map(Number));
  let context = null;
  const stop = () => {
    if (context) context.close();
    context = null;
    button.textContent = `Play ${button.dataset.name}`;
  };
  const play = () => {
    context = new AudioContext();
    const partials = [0, 1, 0.45, 0.22, 0.12, 0.07, 0.04];
    const wave = context.createPeriodicWave(new Float32Array(partials.length), new Float32Array(partials));
    const mix = context.createDynamicsCompressor();
    mix.connect(context.destination);
    const begin = context.currentTime + 0.1;
    let ending = null, last = 0;
    for (const [first, end, pitch] of notes) {
      const source = context.createOscillator(), gain = context.createGain();
      const start = begin + first * step, stopping = begin + end * step;
      source.setPeriodicWave(wave);
      source.frequency.value = 440 * 2 ** ((pitch - 69) / 12);
      gain.gain.setValueAtTime(0, start);
      gain.gain.linearRampToValueAtTime(0.2, start + 0.01);
      gain.gain.setTargetAtTime(0.02, start + 0.01, 1);
      gain.gain.setTargetAtTime(0, stopping, 0.04);
      source.connect(gain).connect(mix);
      source.start(start);
      source.stop(stopping + 0.3);
      if (end >= last) [ending, last] = [source, end];
    }
    if (ending) ending.onended = stop;
    button.textContent = `Stop ${button.dataset.name}`;
  };
  button.addEventListener("click", () => (context ? stop() : play()));
  stop();
  button.hidden = notes.length === 0;
}
