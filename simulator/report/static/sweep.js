// A sweep, a comparison or a frontier: maps over the grid, curves with bands, tables.

function showSweep(sweep) {
  const article = document.getElementById(sweep.key);
  const part = (name) => article.querySelector(`section.${name}`);
  showMap(part("map"), sweep);
  showFrontier(part("frontier"), sweep);
  showCurves(part("error"), sweep);
  showTables(part("tables").querySelector(".rows"), sweep);
  article.report = {sweep};
}

/** Choosers for the keys that a chart does not span; the one chosen of each is in the result. */
function fixing(controls, axes, redraw) {
  const chosen = new Map(axes.map(({key}) => [key, 0]));
  const labels = new Map(axes.map(({key, label, values}) => [key, chooser(label, values, (i) => {
    chosen.set(key, i);
    redraw();
  })]));
  controls.append(...labels.values());
  return {chosen, hideAll: (hidden) => labels.forEach((label, key) => { label.hidden = hidden.includes(key); })};
}

// --- maps -----------------------------------------------------------------------------------------
/** The rows of a table by the positions of their values along two axes, all others being fixed. */
function cellsOf(sweep, measure, x, y, fixed, other) {
  const {columns, rows} = sweep.tables[measure.table];
  const codes = sweep.codes[measure.table];
  const found = [];
  for (let row = 0; row < rows; row++) {
    if (other && columns.second[row] !== other) continue;
    if ([...fixed].some(([key, i]) => key !== x.key && key !== y?.key && codes[key] && codes[key][row] !== i)) continue;
    found.push({
      x: codes[x.key][row],
      y: y ? codes[y.key][row] : 0,
      value: columns[measure.name][row],
      low: columns[measure.low][row],
      high: columns[measure.high][row],
      bound: boundOf(columns, measure, row),
      more: moreOf(columns, measure, row),
    });
  }
  return found;
}

/** What stands before a number that is only a bound. */
function boundOf(columns, measure, row) {
  if (measure.ratio) return columns.bound[row] === "=" ? "" : columns.bound[row];
  return measure.name.endsWith("_to_target") && columns.censored[row] > 0 ? "≥" : "";
}

/** What else to say of a cell. */
function moreOf(columns, measure, row) {
  if (!measure.ratio) return [`${columns.runs[row]} runs, ${columns.censored[row]} censored, ${columns.failed[row]} failed`];
  const tuned = ["tuned_first", "tuned_second"].map((name) => columns[name]?.[row]).filter(Boolean);
  return [`${columns.used[row]} of ${columns.pairs[row]} pairs`, ...tuned.map((text) => `tuned: ${text}`)];
}

function cellText(measure, cell) {
  const interval = Number.isFinite(cell.low) ? `95 %: ${shown(cell.low)} … ${shown(cell.high)}` : "one seed: no interval";
  return [`${measure.label}: ${cell.bound} ${shown(cell.value)}`, interval, ...cell.more];
}

function showMap(section, sweep) {
  const measures = sweep.measures.filter(({table}) => Object.keys(sweep.codes[table] ?? {}).length);
  if (!measures.length || sweep.kind === "frontier") return section.remove();
  const controls = section.querySelector(".controls");
  const node = section.querySelector(".chart");
  let measure = measures[0];
  const sides = sweep.tables.speedup ? [...new Set(sweep.tables.speedup.columns.second)] : [];
  let other = sides[0];
  const first = sweep.tables.speedup?.columns.first[0];
  const note = el("p", {className: "note"});
  node.after(note);
  const axesOf = () => {
    const axes = sweep.axes.filter(({key}) => key in sweep.codes[measure.table]);
    const plain = axes.filter(({key}) => key !== "world");
    return plain.length ? plain.slice(0, 2) : axes.slice(0, 1);
  };
  const again = () => {
    const spanned = axesOf().map(({key}) => key);
    const without = sweep.axes.map(({key}) => key).filter((key) => spanned.includes(key) || !(key in sweep.codes[measure.table]));
    fixed.hideAll(without);
    note.textContent = !measure.ratio ? "" : spanned.length > 1
      ? `Blue: ${first} needs less; red: ${other} does; grey: undecided at 95 %.`
      : `Above 1, ${first} needs less than ${other}.`;
    node.chart?.refresh();
  };
  controls.append(chooser("show", measures.map(({label}) => label), (i) => { measure = measures[i]; again(); }));
  if (sides.length > 1) controls.append(chooser("over", sides, (i) => { other = sides[i]; again(); }));
  const fixed = fixing(controls, sweep.axes, again);
  again();
  new Chart(node, (colours) => {
    const [x, y] = axesOf();
    const cells = cellsOf(sweep, measure, x, y, fixed.chosen, measure.ratio ? other : null);
    return (y ? heatMap : overOne)(colours, measure, cells, x, y);
  });
}

const category = (axis) => ({
  title: {text: forPlotly(axis.label), standoff: 8}, type: "category", categoryorder: "array",
  categoryarray: axis.values.map(forPlotly), showgrid: false,
});

/** A measure over one key, with its interval. */
function overOne(colours, measure, cells, axis) {
  cells.sort((a, b) => a.x - b.x);
  const line = {
    // A line only where the values have an order: numbers, perhaps with a unit.
    type: "scatter", mode: axis.values.every((value) => /^[-+.\d]/.test(value)) ? "lines+markers" : "markers",
    x: cells.map((cell) => forPlotly(axis.values[cell.x])), y: cells.map((cell) => cell.value),
    error_y: {
      type: "data", symmetric: false, thickness: 1.2,
      array: cells.map((cell) => cell.high - cell.value), arrayminus: cells.map((cell) => cell.value - cell.low),
    },
    line: {color: colours.lines[0]}, marker: {size: 8},
    hovertext: cells.map((cell) => cellText(measure, cell).map(forPlotly).join("<br>")), hovertemplate: "%{hovertext}<extra></extra>",
  };
  const log = cells.every((cell) => cell.value > 0) && (measure.ratio || spread(cells) > 10);
  const one = {type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: {color: colours.faint, dash: "dot"}};
  const y = {title: {text: titled(measure.label), standoff: 8}, type: log ? "log" : "linear"};
  return {data: [line], layout: layoutOf(colours, category(axis), y, {shapes: measure.ratio ? [one] : []})};
}

function spread(cells) {
  const values = cells.map((cell) => cell.value).filter(Number.isFinite);
  return Math.max(...values) / Math.min(...values);
}

/** A heat map over two keys; of ratios, a phase diagram in which undecided cells are grey. */
function heatMap(colours, measure, cells, x, y) {
  const grid = (value) => y.values.map((_, j) => x.values.map((__, i) => {
    const cell = cells.find((each) => each.x === i && each.y === j);
    return cell ? value(cell) : null;
  }));
  const undecided = (cell) => Boolean(measure.ratio) && (!(cell.low > 1 || cell.high < 1) || cell.bound === "?");
  const log = measure.ratio || (cells.every((cell) => cell.value > 0) && spread(cells) > 10);
  const height = (cell) => (Number.isFinite(cell.value) ? (log ? Math.log10(cell.value) : cell.value) : null);
  const common = {
    type: "heatmap", x: x.values.map(forPlotly), y: y.values.map(forPlotly), xgap: 2, ygap: 2,
    texttemplate: cells.length > 400 ? "" : "%{text}",
    hovertext: grid((cell) => [`${x.label}: ${x.values[cell.x]}`, `${y.label}: ${y.values[cell.y]}`, ...cellText(measure, cell)].map(forPlotly).join("<br>")),
    hovertemplate: "%{hovertext}<extra></extra>",
  };
  // Plotly writes on empty cells too, over what the other map wrote there.
  const numbers = (grey) => grid((cell) => (undecided(cell) === grey ? `${cell.bound}${cell.bound ? " " : ""}${shown(Number(cell.value.toPrecision(3)))}` : ""));
  const reach = Math.max(Math.log10(3), ...cells.map((cell) => Math.abs(height(cell) ?? 0)));
  const marks = [0.001, 0.01, 0.03, 0.1, 0.3, 0.5, 1, 2, 3, 10, 30, 100, 1000, 1e4, 1e5, 1e6];
  const bar = {thickness: 12, outlinewidth: 0, tickfont: {size: 11}};
  if (log) Object.assign(bar, {tickvals: marks.map(Math.log10), ticktext: marks.map((mark) => `${shown(mark)}${measure.ratio ? "×" : ""}`)});
  const decided = {
    ...common, text: numbers(false), z: grid((cell) => (undecided(cell) ? null : height(cell))), colorbar: bar,
    colorscale: plotlyScale(measure.ratio ? DIVERGING : SEQUENTIAL), hoverongaps: false,
    ...(measure.ratio ? {zmin: -reach, zmax: reach} : {}),
  };
  const grey = {
    ...common, text: numbers(true), z: grid((cell) => (undecided(cell) ? 0 : null)), showscale: false, hoverongaps: false,
    colorscale: [[0, colours.undecided], [1, colours.undecided]],
  };
  return {
    data: measure.ratio ? [decided, grey] : [decided],
    layout: layoutOf(colours, category(x), category(y), {
      margin: {l: 62, r: 8, t: 12, b: 48},
    }),
  };
}

// --- frontiers ------------------------------------------------------------------------------------
function showFrontier(section, sweep) {
  const table = sweep.tables.frontier;
  if (!table) return section.remove();
  const codes = sweep.codes.frontier;
  const {columns, rows} = table;
  const node = section.querySelector(".chart");
  const others = sweep.axes.filter(({key}) => key in codes && ![sweep.vary, "knob", "value"].includes(key));
  const fixed = fixing(section.querySelector(".controls"), others, () => node.chart.refresh());
  const side = sweep.axes.find(({key}) => key === sweep.vary);
  new Chart(node, (colours) => {
    const data = side.values.map((name, number) => {
      const own = Array.from({length: rows}, (_, row) => row).filter((row) => codes[sweep.vary][row] === number
        && [...fixed.chosen].every(([key, i]) => codes[key][row] === i));
      const bars = (cost, sign) => own.map((row) => Math.abs(columns[`${cost}_paired_${sign}`][row] - columns[cost][row]));
      const error = (cost) => ({type: "data", symmetric: false, array: bars(cost, "high"), arrayminus: bars(cost, "low"), thickness: 1, width: 0});
      return {
        type: "scatter", mode: "lines+markers+text", name: forPlotly(`${name}: ${columns.knob[own[0]] ?? ""}`),
        x: own.map((row) => columns.communications[row]), y: own.map((row) => columns.time[row]),
        text: own.map((row) => forPlotly(String(columns.value[row]))), textposition: "top right", textfont: {size: 11},
        error_x: error("communications"), error_y: error("time"),
        line: {color: colours.lines[number], dash: DASHES[number]}, marker: {size: 8},
        hovertemplate: "%{text}: %{y:.4g} s, %{x:,.0f} communications<extra>%{fullData.name}</extra>",
      };
    });
    return {
      data,
      layout: layoutOf(colours, {title: {text: "communications to target", standoff: 8}, type: "log"}, {title: {text: "time to target (s)", standoff: 8}, type: "log"}, {showlegend: true}),
    };
  });
}

// --- curves ---------------------------------------------------------------------------------------
function showCurves(section, sweep) {
  if (!sweep.curves) return section.remove();
  const {metrics, groups} = sweep.curves;
  const told = sweep.axes.findIndex(({key}) => key === (sweep.vary ?? sweep.axes.find((axis) => axis.key !== "world")?.key));
  const others = sweep.axes.filter((_, i) => i !== told);
  let charts = [];
  const fixed = fixing(section.querySelector(".controls"), others, () => charts.forEach((chart) => chart.refresh()));
  const shades = shadesOf(SEQUENTIAL);
  charts = errorCharts(section, metrics, {
    lines: (metric, axis) => groups
      .filter((group) => group.axis === axis && sweep.axes.every(({key}, i) => i === told || group.codes[i] === fixed.chosen.get(key)))
      .map((group, i, all) => ({
        name: told < 0 ? "mean" : forPlotly(`${sweep.axes[told].label.split(".").pop()}: ${sweep.axes[told].values[group.codes[told]]}`),
        x: group.x,
        y: group.metrics[metric][0],
        low: group.metrics[metric][1],
        high: group.metrics[metric][2],
        ...(all.length > 8 ? {colour: hexed(shades[Math.round((i * (SHADES - 1)) / all.length)]), dash: "solid"} : {}),
      })),
  });
}

/** rgb(r,g,b) as #rrggbb. */
function hexed(colour) {
  return `#${colour.match(/\d+/g).map((c) => Number(c).toString(16).padStart(2, "0")).join("")}`;
}

// --- tables ---------------------------------------------------------------------------------------
function showTables(node, sweep) {
  Object.entries(sweep.tables).forEach(([name, {title, columns, rows}], i) => {
    const render = name !== "runs" ? null : (column, value, row) =>
      (column === "folder" && sweep.pages[row] ? el("a", {href: sweep.pages[row]}, value) : null);
    const text = `${title} (${rows.toLocaleString("en")})`;
    const details = el("details", {open: i === 0}, el("summary", {}, text));
    // Filled when it is opened: few are.
    const fill = () => details.childElementCount > 1 || details.append(sortableTable(columns, {render}));
    details.addEventListener("toggle", fill);
    if (i === 0) fill();
    node.append(details);
  });
}
