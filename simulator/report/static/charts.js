// Charts: Plotly in the page's colours, drawn when they come into view or nothing else is to be done,
// linked in pairs.

const CONFIG = {
  displaylogo: false,
  responsive: true,
  modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
};
const drawn = new Set();
const waiting = new Set();

/** Kept when Plotly is there: charts wait for it. */
let plotlyStarted;
const plotly = new Promise((resolve) => { plotlyStarted = resolve; });

/** Run Plotly's script, which the page carries as text; the page's policy knows it by its hash. */
function startPlotly() {
  const text = document.getElementById("plotly");
  document.body.append(el("script", {text: text.textContent}));
  text.remove();
  plotlyStarted();
  plotly.then(() => {
    document.documentElement.dataset.charts = performance.now().toFixed(0);
    whenIdle(drawNext);
  });
}

const whenIdle = window.requestIdleCallback ?? ((task) => setTimeout(task, 50));

/** One more of the charts that nobody has come to: they are there for a print or a picture. */
function drawNext() {
  const next = [...waiting].find((chart) => chart.node.offsetParent);
  if (!next) return;
  next.draw();
  whenIdle(drawNext);
}
darkness.addEventListener("change", () => drawn.forEach((chart) => chart.draw()));

/** A chart in an element; make(colours) gives Plotly's {data, layout} whenever it is drawn. */
class Chart {
  constructor(node, make, eager = false) {
    this.node = node;
    this.make = make;
    this.listeners = [];
    this.ready = false;
    node.chart = this;
    if (eager) plotly.then(() => this.draw());
    else {
      waiting.add(this);
      new IntersectionObserver((entries, observer) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        plotly.then(() => { if (!this.ready) this.draw(); });
      }, {rootMargin: "300px"}).observe(node);
    }
  }

  /** Draw, or draw anew. */
  draw() {
    waiting.delete(this);
    const {data, layout} = this.make(theme());
    Plotly.react(this.node, data, layout, CONFIG);
    if (!this.ready) {
      this.ready = true;
      this.node.dataset.drawn = "";
      drawn.add(this);
      this.listeners.forEach(([event, listener]) => this.node.on(event, listener));
      this.node.on("plotly_afterplot", () => { this.placeTicks(); this.placeCursor(); });
    }
  }

  /** Draw anew if it has been drawn. */
  refresh() {
    if (this.ready) this.draw();
  }

  on(event, listener) {
    this.listeners.push([event, listener]);
  }

  /** Round numbers along logarithmic axes, whatever part of them is in view. */
  placeTicks() {
    const change = {};
    for (const name of ["xaxis", "yaxis"]) {
      const axis = this.node._fullLayout[name];
      if (axis?.type !== "log") continue;
      const ticks = logTicks(Math.min(...axis.range), Math.max(...axis.range), axis._length < 260 ? 4 : 7);
      if (String(ticks) === String(axis.tickvals)) continue;
      Object.assign(change, {[`${name}.tickvals`]: ticks, [`${name}.ticktext`]: ticks.map(tickText)});
    }
    if (Object.keys(change).length) Plotly.relayout(this.node, change);
  }

  /** A line across at x, which costs no drawing. */
  setCursor(x) {
    this.cursorAt = x;
    this.placeCursor();
  }

  placeCursor() {
    const full = this.node._fullLayout;
    if (this.cursorAt === undefined || !full) return;
    if (!this.cursor) this.cursor = this.node.appendChild(el("div", {className: "cursor"}));
    const {xaxis, yaxis} = full;
    const x = xaxis.d2p(this.cursorAt);
    this.cursor.hidden = !(x >= 0 && x <= xaxis._length);
    this.cursor.style.left = `${xaxis._offset + x}px`;
    this.cursor.style.top = `${yaxis._offset}px`;
    this.cursor.style.height = `${yaxis._length}px`;
  }
}

const LEGEND = {orientation: "h", traceorder: "normal", y: 1.02, yanchor: "bottom", x: 0, font: {size: 12}};

/** A layout in the page's colours; x and y are titles, or whole axes. */
function layoutOf(colours, x, y, more = {}) {
  const axis = (given) => ({
    gridcolor: colours.grid,
    zerolinecolor: colours.grid,
    linecolor: colours.faint,
    ticks: "outside",
    tickcolor: colours.grid,
    automargin: true,
    exponentformat: "power",
    ...(typeof given === "string" ? {title: {text: given, standoff: 8}} : given),
  });
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: {family: "system-ui, sans-serif", size: 12.5, color: colours.ink},
    hoverlabel: {bgcolor: colours.card, bordercolor: colours.faint, font: {color: colours.ink}},
    margin: {l: 62, r: 12, t: 26, b: 48},
    legend: LEGEND,
    hovermode: "closest",
    modebar: {bgcolor: "rgba(0,0,0,0)", color: colours.grid, activecolor: colours.faint},
    xaxis: axis(x),
    yaxis: axis(y),
    ...more,
  };
}

/** Ticks between two powers of ten: three round numbers at least, and about so many at most. */
function logTicks(low, high, most) {
  const every = Math.max(1, Math.ceil((high - low) / most));
  for (const steps of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]]) {
    const ticks = [];
    for (let power = Math.floor(low); power <= high; power += every) ticks.push(...steps.map((step) => step * 10 ** power));
    const inside = ticks.filter((tick) => tick >= 10 ** low * 0.999 && tick <= 10 ** high * 1.001);
    if (inside.length > 2) return inside;
  }
  const size = 10 ** Math.floor(Math.log10((10 ** high - 10 ** low) / 2));
  const count = Math.floor((10 ** high - 10 ** low) / size);
  const step = size * (count > 10 ? 5 : count > 4 ? 2 : 1);
  const first = Math.ceil(10 ** low / step);
  return Array.from({length: Math.floor(10 ** high / step) - first + 1}, (_, i) => (first + i) * step);
}

/** A tick's number: 0.01, 200, 30k, 1.5M or a power of ten. */
function tickText(value) {
  const power = Math.floor(Math.log10(value) + 1e-9);
  if (power < -4 || power > 8) {
    const digit = Number((value / 10 ** power).toPrecision(3));
    return `${digit === 1 ? "" : `${digit}·`}10<sup>${String(power).replace("-", "−")}</sup>`;
  }
  const [size, unit] = power >= 6 ? [1e6, "M"] : power >= 4 ? [1e3, "k"] : [1, ""];
  return `${Number((value / size).toPrecision(6))}${unit}`;
}

/** A long title on two lines. */
function titled(text) {
  const words = text.split(" ");
  let first = "";
  while (words.length && first.length + words[0].length < text.length * 0.6) first += `${words.shift()} `;
  return text.length > 26 ? `${forPlotly(first.trim())}<br>${forPlotly(words.join(" "))}` : forPlotly(text);
}

const AXES = {time: "simulated time (s)", communications: "communications (messages sent)"};

/** A metric is a step function: between samples the last value holds. */
function stepLine(line, colour, dash) {
  return {
    type: "scatter",
    mode: "lines",
    name: line.name,
    x: line.x,
    y: line.y,
    line: {shape: "hv", color: colour, width: 2, dash},
    hovertemplate: "%{y:.4g} at %{x:.6g}<extra>%{fullData.name}</extra>",
  };
}

/**
 * The band between two lines.
 *
 * On a logarithmic axis, which has no room for what ends below 0, the lower half mirrors the upper one.
 */
function bandOf(line, colour, log) {
  const common = {type: "scatter", mode: "lines", x: line.x, line: {width: 0, shape: "hv"}, hoverinfo: "skip", showlegend: false};
  return [
    {...common, y: log ? line.y.map((value, i) => value ** 2 / line.high[i]) : line.low},
    {...common, y: line.high, fill: "tonexty", fillcolor: faded(colour, 0.18)},
  ];
}

/** A colour #rrggbb, made transparent. */
function faded(hex, alpha) {
  return `rgba(${channels(hex).join(",")},${alpha})`;
}

/**
 * Two linked charts of a metric, against time and against communications.
 *
 * lines(metric, axis) gives {name, x, y, low, high, colour, dash} each, legend says what names are,
 * levels(metric) gives horizontal lines by name.  With samples (columns of a trace) both charts zoom to the same samples.
 */
function errorCharts(section, metrics, {lines, legend = "", levels = () => ({}), samples = null, seek = null}) {
  let metric = metrics[0];
  const logs = {y: metric.log, x: false};
  const nodes = Object.keys(AXES).map((axis) => section.querySelector(`[data-chart="${axis}"]`));
  const make = (axis) => (colours) => {
    const data = [];
    lines(metric.kind, axis).forEach((line, i) => {
      const colour = line.colour ?? colours.lines[i % colours.lines.length];
      if (line.low && line.low.every(Number.isFinite)) data.push(...bandOf(line, colour, logs.y));
      data.push(stepLine(line, colour, line.dash ?? DASHES[i % DASHES.length]));
    });
    // Data come first in the list, so that a script finds them; bands are below all the same.
    const shapes = Object.entries(levels(metric.kind)).filter(([, y]) => !logs.y || y > 0);
    const many = data.filter((trace) => trace.showlegend !== false).length;
    return {
      data,
      layout: layoutOf(
        colours,
        {title: {text: AXES[axis], standoff: 8}, type: logs.x ? "log" : "linear", tickformat: axis === "time" ? "" : "~s"},
        {title: {text: titled(metric.label), standoff: 8}, type: logs.y ? "log" : "linear"},
        {
          showlegend: many > 1,
          legend: {...LEGEND, title: {text: legend && `${legend}:`, side: nodes[0].clientWidth < 420 ? "top" : "left"}},
          shapes: shapes.map(([, y], i) => ({
            type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y,
            line: {color: colours.lines[1 + (i % 4)], width: 1.3, dash: DASHES[1 + (i % 4)]},
          })),
          annotations: shapes.map(([name, y], i) => ({
            text: name, xref: "paper", x: 1, xanchor: "right", y: logs.y ? Math.log10(y) : y,
            yanchor: "bottom", showarrow: false, font: {size: 11.5, color: colours.lines[1 + (i % 4)]},
          })),
        },
      ),
    };
  };
  const charts = nodes.map((node, i) => new Chart(node, make(Object.keys(AXES)[i])));
  const again = () => charts.forEach((chart) => chart.refresh());
  const logY = ticker("log y", logs.y, (on) => { logs.y = on; again(); });
  section.querySelector(".controls").append(
    chooser("metric", metrics.map((each) => each.label), (i) => {
      metric = metrics[i];
      logs.y = metric.log;
      logY.querySelector("input").checked = logs.y;
      again();
    }),
    logY,
    ticker("log x", logs.x, (on) => { logs.x = on; again(); }),
  );
  link(charts, samples, seek);
  return charts;
}

/** Zooming one chart zooms the other to the same samples; pointing at one points at the other. */
function link(charts, samples, seek) {
  let busy = false;
  const names = Object.keys(AXES);
  charts.forEach((chart, i) => {
    const other = charts[1 - i];
    chart.on("plotly_relayout", (change) => {
      if (busy || !other.ready) return;
      const same = {};
      for (const [key, value] of Object.entries(change)) if (/^yaxis\.(auto)?range/.test(key)) same[key] = value;
      if (change["xaxis.autorange"]) same["xaxis.autorange"] = true;
      const range = ["xaxis.range[0]", "xaxis.range[1]"].map((key) => change[key]);
      if (samples && range.every((x) => x !== undefined)) {
        const log = chart.node.layout.xaxis.type === "log";
        const places = range.map((x) => lastAtMost(samples[names[i]], log ? 10 ** x : x));
        const ends = places.map((place) => samples[names[1 - i]][place]);
        if (ends[1] > ends[0]) same["xaxis.range"] = log ? ends.map((x) => Math.log10(Math.max(x, 1e-12))) : ends;
      }
      if (!Object.keys(same).length) return;
      busy = true;
      Plotly.relayout(other.node, same).then(() => { busy = false; });
    });
    if (!samples) return;
    chart.on("plotly_hover", ({points}) => {
      if (busy || !other.ready) return;
      busy = true;
      Plotly.Fx.hover(other.node, [{curveNumber: points[0].curveNumber, pointNumber: points[0].pointNumber}]);
      busy = false;
    });
    chart.on("plotly_unhover", () => other.ready && Plotly.Fx.unhover(other.node));
    if (seek) chart.on("plotly_click", ({points}) => seek(samples.time[points[0].pointNumber]));
  });
}

/** A distribution as recorded and as its law has it, over logarithmic bins. */
function distributionChart(node, {edges, found, law, words, mean, law_mean, total, zeros}, what) {
  if (!total || zeros === total) {
    node.replaceWith(el("p", {className: "note"}, total ? `${what}: always 0.` : `${what}: nothing was recorded.`));
    return;
  }
  const closed = (shares) => [...shares, 0];
  if (law) node.after(el("p", {className: "note"}, `The law: ${words}.`));
  new Chart(node, (colours) => {
    const bars = {
      type: "scatter", mode: "lines", name: `recorded, mean ${shownTime(mean)}`, x: edges, y: closed(found),
      fill: "tozeroy", fillcolor: faded(colours.lines[0], 0.22), line: {shape: "hv", color: colours.lines[0], width: 1.4},
      hovertemplate: "%{y:.3%} from %{x:.3g} s<extra>recorded</extra>",
    };
    const line = law && {
      type: "scatter", mode: "lines", name: `law, mean ${shownTime(law_mean)}`, x: edges, y: closed(law),
      line: {shape: "hv", color: colours.lines[1], width: 2, dash: "dash"},
      hovertemplate: "%{y:.3%} from %{x:.3g} s<extra>law</extra>",
    };
    const title = {text: what, standoff: 8};
    return {
      data: law ? [bars, line] : [bars],
      layout: layoutOf(colours, {title, type: "log"}, {title: {text: "share", standoff: 8}, tickformat: ".0%", rangemode: "tozero"},
        {showlegend: true}),
    };
  });
}
