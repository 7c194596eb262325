// The network on one canvas: links drawn once, agents in the colours of a moment, messages on their way.

const MARGIN = 18;
const REPLY = 1;
/** From so many agents on, discs are stamped into pixels. */
const MANY = 1500;
const FATES = {underWay: 0, arrived: 1, lost: 2};

class Network {
  constructor(canvas, run) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.run = run;
    const {x, y, links, weights} = run.network;
    this.n = x.length;
    this.places = {x, y};
    this.links = links;
    this.weights = weights;
    this.px = new Float32Array(this.n);
    this.py = new Float32Array(this.n);
    this.shade = new Uint8Array(this.n);
    this.selected = -1;
    this.time = 0;
    this.colouring = run.colourings[0];
    this.frame = -1;
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    darkness.addEventListener("change", () => this.resize(true));
  }

  /** Fit the canvas to its place and draw the links anew. */
  resize(force = false) {
    const width = this.canvas.clientWidth;
    if (!width || (width === this.width && !force)) return;
    this.width = width;
    const spans = [this.places.x, this.places.y].map((values) => values.reduce((a, b) => Math.max(a, b), 0) || 1);
    const [least, most] = width < 600 ? [0.75, 1.1] : [0.5, 0.72];
    this.height = Math.round(width * Math.min(most, Math.max(least, spans[1] / spans[0])));
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    const room = [width - 2 * MARGIN, this.height - 2 * MARGIN];
    const scale = Math.min(room[0] / spans[0], room[1] / spans[1]);
    const left = (width - scale * spans[0]) / 2;
    const bottom = (this.height + scale * spans[1]) / 2;
    for (let i = 0; i < this.n; i++) {
      this.px[i] = left + scale * this.places.x[i];
      this.py[i] = bottom - scale * this.places.y[i];
    }
    this.radius = Math.max(1.7, Math.min(7, 0.2 * Math.sqrt((width * this.height) / this.n)));
    this.colours = theme();
    this.background = this.drawLinks();
    this.sprites = null;
    this.draw();
  }

  surface() {
    const canvas = document.createElement("canvas");
    canvas.width = this.canvas.width;
    canvas.height = this.canvas.height;
    const context = canvas.getContext("2d", {willReadFrequently: this.n >= MANY});
    context.scale(this.ratio, this.ratio);
    return [canvas, context];
  }

  /** All links, once, in a few strengths, on a canvas of their own. */
  drawLinks() {
    const [canvas, context] = this.surface();
    context.fillStyle = this.colours.card;
    context.fillRect(0, 0, this.width, this.height);
    const count = this.links.length / 2;
    let most = 0;
    let sum = 0;
    for (let e = 0; e < count; e++) {
      most = Math.max(most, this.weights.at(e));
      sum += this.weights.at(e);
    }
    const levels = 8;
    const ink = Math.min(0.3, Math.max(0.05, 400 / Math.max(1, sum / (most || 1))));
    context.strokeStyle = this.colours.ink;
    context.lineWidth = this.n > 2000 ? 0.4 : 0.7;
    const paths = Array.from({length: levels}, () => new Path2D());
    for (let e = 0; e < count; e++) {
      const strength = this.weights.at(e) / (most || 1);
      if (strength < 0.01 && count > 5000) continue; // too faint to be seen
      const path = paths[Math.min(levels - 1, Math.floor(strength * levels))];
      const [i, j] = [this.links[2 * e], this.links[2 * e + 1]];
      path.moveTo(this.px[i], this.py[i]);
      path.lineTo(this.px[j], this.py[j]);
    }
    paths.forEach((path, level) => {
      context.globalAlpha = (ink * (level + 0.6)) / levels;
      context.stroke(path);
    });
    this.stamps = this.n >= MANY ? new Stamps(context) : null;
    return canvas;
  }

  /** A disc of every shade, ready to be copied: drawing ten thousand is then quick. */
  makeSprites() {
    const size = Math.ceil(2 * this.radius + 3);
    const shades = shadesFor(this.colouring);
    const canvas = document.createElement("canvas");
    const pixels = Math.ceil(size * this.ratio);
    canvas.width = pixels * (SHADES + 1);
    canvas.height = pixels;
    const context = canvas.getContext("2d");
    for (let k = 0; k <= SHADES; k++) {
      context.beginPath();
      context.arc(pixels * (k + 0.5), pixels / 2, this.radius * this.ratio, 0, 2 * Math.PI);
      context.fillStyle = k < SHADES ? shades[k] : this.colours.undecided;
      context.fill();
      if (this.radius < 2.2) continue;
      context.lineWidth = 0.6 * this.ratio;
      context.strokeStyle = faded(hexOf(this.colours.ink), 0.55);
      context.stroke();
    }
    this.sprites = {canvas, size, pixels};
    this.colourOf = [...shades, this.colours.undecided].map(pixelOf);
    this.disc = discMask(this.radius * this.ratio);
  }

  /** What colours mean from now on. */
  colourBy(colouring) {
    this.colouring = colouring;
    this.frame = -1;
    this.sprites = null;
    this.draw();
  }

  /** Go to a moment; draws only what changes. */
  setTime(time) {
    this.time = time;
    const moving = this.run.messages && time <= this.run.messages.end && time >= this.run.messages.start;
    if (moving || this.moved || lastAtMost(this.colouring.times, time) !== this.frame) this.draw();
    this.moved = moving;
  }

  select(agent) {
    this.selected = agent;
    this.draw();
  }

  /** The shades of all agents at the moment. */
  shadeAll() {
    const {times, values} = this.colouring;
    const frame = lastAtMost(times, this.time);
    if (frame === this.frame) return;
    this.frame = frame;
    for (let i = 0; i < this.n; i++) {
      const value = values.at(frame * this.n + i);
      this.shade[i] = Number.isNaN(value) ? SHADES : Math.round(placeOf(this.colouring, value) * (SHADES - 1));
    }
  }

  draw() {
    if (!this.background) return;
    if (!this.sprites) this.makeSprites();
    this.shadeAll();
    const {context, px, py} = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = 1;
    if (this.stamps) this.stampAgents();
    else context.drawImage(this.background, 0, 0);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    if (this.selected >= 0) this.drawSelectedLinks();
    if (!this.stamps) this.drawAgents();
    if (this.selected >= 0) {
      context.beginPath();
      context.arc(px[this.selected], py[this.selected], this.radius + 3.5, 0, 2 * Math.PI);
      context.lineWidth = 2.5;
      context.strokeStyle = this.colours.lines[1];
      context.stroke();
    }
    if (this.run.messages) this.drawMessages();
  }

  drawAgents() {
    const {canvas, size, pixels} = this.sprites;
    const half = size / 2;
    for (let i = 0; i < this.n; i++) {
      const [x, y] = [this.px[i] - half, this.py[i] - half];
      this.context.drawImage(canvas, this.shade[i] * pixels, 0, pixels, pixels, x, y, size, size);
    }
  }

  stampAgents() {
    const {stamps, ratio, disc, px, py, shade, colourOf} = this;
    stamps.clear();
    for (let i = 0; i < this.n; i++) stamps.disc(ratio * px[i], ratio * py[i], disc, colourOf[shade[i]]);
    stamps.show(this.context);
  }

  drawSelectedLinks() {
    const {context, px, py} = this;
    const own = [];
    for (let e = 0; e < this.links.length; e += 2) {
      if (this.links[e] === this.selected || this.links[e + 1] === this.selected) own.push(e);
    }
    const most = Math.max(...own.map((e) => this.weights.at(e / 2)), 1e-300);
    context.lineWidth = 1.2;
    context.strokeStyle = this.colours.lines[1];
    for (const e of own) {
      context.globalAlpha = 0.7 * Math.max(0.06, this.weights.at(e / 2) / most);
      context.beginPath();
      context.moveTo(px[this.links[e]], py[this.links[e]]);
      context.lineTo(px[this.links[e + 1]], py[this.links[e + 1]]);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** Messages under way at the moment; a lost one goes half the way. */
  drawMessages() {
    const {sent, until, fate, what, from, to, start, end, typical} = this.run.messages;
    const {context, px, py, time} = this;
    if (time < start || time > end) return;
    const size = Math.max(2, Math.min(3.4, 0.6 * this.radius));
    const paths = {request: new Path2D(), reply: new Path2D(), lost: new Path2D()};
    for (let k = 0; k < sent.length && sent[k] <= time; k++) {
      const lost = fate[k] === FATES.lost;
      const last = lost ? Math.max(until[k], sent[k] + 0.5 * typical) : until[k];
      if (last < time) continue;
      const whole = lost ? 2 * (last - sent[k]) : Number.isFinite(last) ? last - sent[k] : typical;
      const share = Math.min(1, whole > 0 ? (time - sent[k]) / whole : 1);
      const x = px[from[k]] + share * (px[to[k]] - px[from[k]]);
      const y = py[from[k]] + share * (py[to[k]] - py[from[k]]);
      const path = paths[lost ? "lost" : what[k] === REPLY ? "reply" : "request"];
      path.moveTo(x + size, y);
      path.arc(x, y, size, 0, 2 * Math.PI);
    }
    context.lineWidth = 1.6;
    context.strokeStyle = context.fillStyle = this.colours.lines[2];
    context.fill(paths.request);
    context.stroke(paths.reply);
    context.fillStyle = this.colours.lines[1];
    context.fill(paths.lost);
  }

  /** The agent nearest to a place on the canvas, if it is near. */
  near(x, y) {
    let best = -1;
    let least = Math.max(14, this.radius + 6) ** 2;
    for (let i = 0; i < this.n; i++) {
      const distance = (this.px[i] - x) ** 2 + (this.py[i] - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  /** The nearest agent in a direction from another, for the arrow keys. */
  beside(agent, dx, dy) {
    let best = agent;
    let least = Infinity;
    for (let i = 0; i < this.n; i++) {
      const [x, y] = [this.px[i] - this.px[agent], this.py[i] - this.py[agent]];
      const ahead = x * dx + y * dy;
      const aside = Math.abs(x * dy - y * dx);
      if (ahead > 0.5 && aside <= ahead && ahead + aside < least) [best, least] = [i, ahead + aside];
    }
    return best;
  }
}

/** #rgb or #rrggbb as #rrggbb. */
function hexOf(colour) {
  return colour.length === 4 ? `#${[...colour.slice(1)].map((c) => c + c).join("")}` : colour;
}
