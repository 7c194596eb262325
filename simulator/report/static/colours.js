// Colours that stay apart for colour-blind readers, on light and on dark paper.

const darkness = matchMedia("(prefers-color-scheme: dark)");

/** The page's colours, as its style has them at present. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  return {
    ink: get("--ink"),
    faint: get("--faint"),
    grid: get("--grid"),
    paper: get("--paper"),
    card: get("--card"),
    undecided: get("--undecided"),
    lines: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => get(`--line${number}`)),
  };
}

const DASHES = ["solid", "dash", "dashdot", "dot", "longdash", "longdashdot"];

// Matplotlib's cividis and RdBu, at a few places; between them colours are mixed.
const SEQUENTIAL = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
const DIVERGING = ["#67001f", "#b2182b", "#d6604d", "#f4a582", "#fddbc7", "#f7f7f7", "#d1e5f0", "#92c5de", "#4393c3", "#2166ac", "#053061"];
const SHADES = 64;

function channels(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/** A colour at a place from 0 to 1 of a scale. */
function mixed(stops, place) {
  const x = Math.min(1, Math.max(0, place)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(x));
  const [from, to] = [channels(stops[i]), channels(stops[i + 1])];
  const mix = from.map((c, k) => Math.round(c + (to[k] - c) * (x - i)));
  return `rgb(${mix.join(",")})`;
}

/** A scale in SHADES steps. */
function shadesOf(stops) {
  return Array.from({length: SHADES}, (_, i) => mixed(stops, i / (SHADES - 1)));
}

const SHADED = {sequential: shadesOf(SEQUENTIAL), diverging: shadesOf(DIVERGING)};

/** Where a value lies between two others, from 0 to 1. */
function placeOf(colouring, value) {
  const {low, high, values: {log}} = colouring;
  const part = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.min(1, Math.max(0, part));
}

/** The shades of a colouring. */
function shadesFor(colouring) {
  return colouring.diverging ? SHADED.diverging : SHADED.sequential;
}

/** Plotly's form of a scale. */
function plotlyScale(stops) {
  return stops.map((colour, i) => [i / (stops.length - 1), colour]);
}

/** Dark or light ink on a colour rgb(r,g,b). */
function inkOn(colour) {
  const [r, g, b] = colour.match(/[\d.]+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 128 ? "#111" : "#fff";
}
