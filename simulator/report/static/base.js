// Data, numbers and elements: what all other scripts use.

const ARRAYS = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array};

/** Base64 to a typed array. */
function typedArray({dtype, base64}) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[dtype](bytes.buffer);
}

/** JSON with its packed arrays unpacked. */
function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (value === null || typeof value !== "object") return value;
  if ("base64" in value) return typedArray(value);
  if ("codes" in value && "step" in value) return squeezed(value);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, unpack(part)]));
}

/** Numbers in two bytes each: at(i) gives one back, NaN where it is missing. */
function squeezed({codes, first, step, log}) {
  const packed = typedArray(codes);
  const at = (i) => {
    if (packed[i] === 65535) return NaN;
    const value = first + step * packed[i];
    return log ? Math.exp(value) : value;
  };
  return {length: packed.length, at, log};
}

/** An element with properties and children; text is text, never HTML. */
function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A number for people: 341,306 or 0.0554 or 1.2e-7. */
function shown(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
}

/** A time for people. */
function shownTime(seconds) {
  if (seconds === 0) return "0 s";
  const [size, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
  return `${shown(seconds / size)} ${unit}`;
}

/** The position of the last entry that is at most x, in ascending numbers; at least 0. */
function lastAtMost(numbers, x) {
  let low = 0;
  let high = numbers.length;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= x) low = middle;
    else high = middle;
  }
  return low;
}

/** A list of choices with its name. */
function chooser(text, options, onchange, selected = 0) {
  const select = el("select", {onchange: () => onchange(Number(select.value))});
  options.forEach((option, i) => select.append(el("option", {value: i, selected: i === selected}, option)));
  const label = el("label", {}, `${text} `, select);
  label.select = select;
  return label;
}

/** A box to tick. */
function ticker(text, checked, onchange) {
  const box = el("input", {type: "checkbox", checked, onchange: () => onchange(box.checked)});
  return el("label", {}, box, ` ${text}`);
}

/** Text for Plotly, which would take some of it for markup. */
function forPlotly(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
