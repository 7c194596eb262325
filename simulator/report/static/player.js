// Time: a slider, play and pause, how fast, and what colours mean.

const SPEEDS = [0.25, 0.5, 1, 2, 4];
const STEPS = 1000;
/** Seconds in which a whole run plays at speed 1, and a typical delay in slow motion. */
const WHOLE = 20;
const TYPICAL = 0.9;

class Player {
  constructor(section, run, network) {
    this.run = run;
    this.network = network;
    this.speed = 1;
    this.time = 0;
    this.playing = false;
    this.listeners = [];
    const {time} = run.trace;
    this.end = time[time.length - 1];
    this.range = [0, this.end];
    this.button = el("button", {type: "button", className: "play", onclick: () => this.toggle()}, "▶ Play");
    this.slider = el("input", {
      type: "range", min: 0, max: STEPS, value: 0, step: 1, "aria-label": "simulated time",
      oninput: () => { this.pause(); this.seek(this.range[0] + (this.slider.value / STEPS) * (this.range[1] - this.range[0])); },
    });
    this.clock = el("output", {className: "clock"});
    const controls = section.querySelector(".controls");
    controls.append(this.button, this.slider, this.clock);
    if (run.messages && run.messages.sent.length) {
      controls.append(chooser("show", ["the whole run", "messages, in slow motion"], (i) => this.narrow(i === 1)));
    }
    controls.append(
      chooser("speed", SPEEDS.map((speed) => `${speed}×`), (i) => { this.speed = SPEEDS[i]; }, 2),
      chooser("colour by", run.colourings.map((each) => each.label), (i) => this.colourBy(i)),
    );
    this.legend = section.querySelector(".legend");
    this.colourBy(0);
    this.seek(0);
  }

  onTime(listener) {
    this.listeners.push(listener);
  }

  colourBy(i) {
    this.network.colourBy(this.run.colourings[i]);
    this.drawLegend();
  }

  /** The slider spans the whole run, or the window in which messages are shown. */
  narrow(messages) {
    const {start, end} = this.run.messages ?? {};
    this.range = messages ? [start, end] : [0, this.end];
    this.slow = messages;
    this.seek(Math.min(this.range[1], Math.max(this.range[0], this.time)));
  }

  /** Simulated seconds a second. */
  get rate() {
    const span = this.range[1] - this.range[0];
    const {typical} = this.run.messages ?? {};
    return this.speed * (this.slow && typical > 0 ? typical / TYPICAL : span / WHOLE);
  }

  seek(time) {
    this.time = time;
    const [low, high] = this.range;
    this.slider.value = high > low ? Math.round((STEPS * (time - low)) / (high - low)) : 0;
    this.clock.textContent = this.slow ? `${time.toFixed(3)} s` : shownTime(Number(time.toPrecision(4)));
    this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    this.network.setTime(time);
    this.listeners.forEach((listener) => listener(time));
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  pause() {
    this.playing = false;
    this.button.textContent = "▶ Play";
  }

  play() {
    if (this.time >= this.range[1]) this.time = this.range[0];
    this.playing = true;
    this.button.textContent = "❚❚ Pause";
    let before = performance.now();
    const step = (now) => {
      if (!this.playing) return;
      // After a pause of the browser's (another tab), go on where it was.
      const passed = Math.min(0.1, Math.max(0, (now - before) / 1000));
      before = now;
      this.seek(Math.min(this.range[1], this.time + passed * this.rate));
      if (this.time >= this.range[1]) this.pause();
      else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  drawLegend() {
    const colouring = this.network.colouring;
    const ramp = el("span", {className: "ramp"});
    ramp.style.background = `linear-gradient(to right, ${shadesFor(colouring).filter((_, i) => i % 3 === 0).join(",")})`;
    const text = (words) => el("span", {}, words);
    const parts = [text(colouring.label), text(shown(colouring.low)), ramp, text(shown(colouring.high))];
    const key = (kind, text) => el("span", {className: "key"}, el("span", {className: `dot ${kind}`}), text);
    const messages = this.run.messages ? [key("", "request or hello"), key("reply", "reply"), key("lost", "lost")] : [];
    this.legend.replaceChildren(...parts, ...messages);
  }
}
