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
    const beside = !y && !ordered(x);
    node.style.height = beside ? `${90 + 46 * x.values.length}px` : "";
    const {data, layout} = (y ? heatMap : beside ? sideBySide : overOne)(colours, measure, cells, x, y);
    return {data, layout: {...layout, height: node.clientHeight}};
  });
}

const category = (axis) => ({
  title: {text: forPlotly(axis.label), standoff: 8}, type: "category", categoryorder: "array",
  categoryarray: axis.values.map(forPlotly), showgrid: false,
});

/** Have values an order?  Numbers have, perhaps with a unit. */
const ordered = (axis) => axis.values.every((value) => /^[-+.\d]/.test(value));

/** Points with their intervals along x or y; what is only a bound is an open arrow that says so. */
function pointsOf(colours, measure, cells, axis, along, arrows) {
  cells.sort((a, b) => a.x - b.x);
  const bars = (end) => cells.map((cell) => (cell.bound ? null : Math.abs(cell[end] - cell.value)));
  return {
    type: "scatter",
    [along === "x" ? "y" : "x"]: cells.map((cell) => forPlotly(axis.values[cell.x])),
    [along]: cells.map((cell) => cell.value),
    [`error_${along}`]: {type: "data", symmetric: false, thickness: 1.2, array: bars("high"), arrayminus: bars("low")},
    text: cells.map((cell) => `${cell.bound} ${shown(Number(cell.value.toPrecision(3)))}`.trim()),
    line: {color: colours.lines[0]},
    marker: {size: 9, symbol: cells.map((cell) => arrows[cell.bound] ?? "circle")},
    hovertext: cells.map((cell) => cellText(measure, cell).map(forPlotly).join("<br>")), hovertemplate: "%{hovertext}<extra></extra>",
  };
}

/** The axis of a measure: logarithmic where its values are far apart. */
function measureAxis(measure, cells) {
  const log = cells.every((cell) => cell.value > 0) && (measure.ratio || spread(cells) > 10);
  return {title: {text: titled(measure.label), standoff: 8}, type: log ? "log" : "linear"};
}

/** A measure over one key whose values have an order. */
function overOne(colours, measure, cells, axis) {
  const arrows = {"≥": "triangle-up-open", "≤": "triangle-down-open"};
  const line = {...pointsOf(colours, measure, cells, axis, "y", arrows), mode: "lines+markers"};
  const one = {type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: {color: colours.faint, dash: "dot"}};
  return {data: [line], layout: layoutOf(colours, category(axis), measureAxis(measure, cells), {shapes: measure.ratio ? [one] : []})};
}

/**
 * A measure of a few categories, such as the sides of a comparison: a bar each, from 0 or, of ratios,
 * from 1; hatched where its end is only a bound.
 */
function sideBySide(colours, measure, cells, axis) {
  const {marker, ...points} = pointsOf(colours, measure, cells, axis, "x", {});
  const base = measure.ratio ? 1 : 0;
  const bars = {
    ...points, type: "bar", orientation: "h", width: 0.45, base, x: points.x.map((value) => value - base),
    textposition: "none", marker: {color: colours.lines[0], pattern: {shape: cells.map((cell) => (cell.bound ? "/" : "")), fillmode: "replace"}},
  };
  const rows = {
    ...category(axis), title: {text: ""}, range: [axis.values.length - 0.5, -0.5], autorange: false,
    tickvals: points.y, ticktext: points.y.map((name, i) => `${name}<br><b>${points.text[i]}</b>`),
  };
  const {type} = measure.ratio ? measureAxis(measure, cells) : {type: "linear"};
  const across = {type, title: {text: forPlotly(measure.label), standoff: 8}, rangemode: "tozero"};
  return {data: [bars], layout: layoutOf(colours, across, rows)};
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
  const values = Array.from({length: rows}, (_, row) => forPlotly(String((columns.given ?? columns.value)[row])));
  const late = (row) => columns.censored[row] > 0;
  const exact = Array.from({length: rows}, (_, row) => row).filter((row) => !late(row));
  // What did not get to the target stands at the edge, where its point is beyond.
  const ranges = Object.fromEntries(["communications", "time"].map((cost) => {
    const powers = (exact.length ? exact : [...columns[cost].keys()]).map((row) => Math.log10(columns[cost][row]));
    const [low, high] = [Math.min(...powers), Math.max(...powers)];
    return [cost, [low - 0.1 - 0.05 * (high - low), high + 0.1 + 0.1 * (high - low)]];
  }));
  const within = (cost, row) => {
    const [low, high] = ranges[cost];
    return 10 ** Math.min(Math.max(Math.log10(columns[cost][row]), low + 0.04 * (high - low)), high - 0.06 * (high - low));
  };
  const near = (one, other) => ["time", "communications"].every((cost) => Math.abs(Math.log(within(cost, one) / within(cost, other))) < 0.06);
  /** The values of some rows as labels; rows in one place share theirs. */
  const shared = (chosen) => {
    const labels = chosen.map((row) => values[row]);
    for (let i = 0, from = 0; i < chosen.length; i++) {
      if (i + 1 < chosen.length && near(chosen[from], chosen[i + 1])) labels[i] = "";
      else {
        if (from < i) labels[i] = `${values[chosen[from]]} … ${values[chosen[i]]}`;
        from = i + 1;
      }
    }
    return labels;
  };
  new Chart(node, (colours) => {
    const data = side.values.flatMap((name, number) => {
      const own = Array.from({length: rows}, (_, row) => row).filter((row) => codes[sweep.vary][row] === number
        && [...fixed.chosen].every(([key, i]) => codes[key][row] === i));
      const points = (chosen, text, more) => ({
        type: "scatter", name: forPlotly(`${name}: ${columns.knob[own[0]] ?? ""}`), cliponaxis: false, text,
        x: chosen.map((row) => within("communications", row)),
        y: chosen.map((row) => within("time", row)),
        textposition: number ? "bottom right" : "top right", textfont: {size: 11, color: colours.lines[number]}, line: {color: colours.lines[number], dash: DASHES[number]},
        hovertext: chosen.map((row) => `${values[row]}: ${late(row) ? "at least " : ""}${shown(columns.time[row])} s, ${shown(columns.communications[row])} communications`),
        hovertemplate: "%{hovertext}<extra>%{fullData.name}</extra>",
        ...more,
      });
      const bars = (rows, cost, sign) => rows.map((row) => Math.abs(columns[`${cost}_paired_${sign}`][row] - columns[cost][row]));
      const error = (rows, cost) => ({type: "data", symmetric: false, array: bars(rows, cost, "high"), arrayminus: bars(rows, cost, "low"), thickness: 1, width: 0});
      const [there, beyond] = [own.filter((row) => !late(row)), own.filter(late)];
      return [
        points(there, shared(there), {mode: "lines+markers+text", marker: {size: 8}, error_x: error(there, "communications"), error_y: error(there, "time")}),
        points(beyond, shared(beyond), {mode: "markers+text", marker: {size: 12, symbol: "triangle-ne-open", color: colours.lines[number]}, showlegend: false}),
      ];
    });
    return {
      data,
      layout: layoutOf(
        colours,
        {title: {text: "communications to target", standoff: 8}, type: "log", range: ranges.communications},
        {title: {text: "time to target (s)", standoff: 8}, type: "log", range: ranges.time},
        {showlegend: true},
      ),
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
    legend: told < 0 ? "" : forPlotly(sweep.axes[told].label),
    lines: (metric, axis) => groups
      .filter((group) => group.axis === axis && sweep.axes.every(({key}, i) => i === told || group.codes[i] === fixed.chosen.get(key)))
      .map((group, i, all) => ({
        name: told < 0 ? "mean" : forPlotly(sweep.axes[told].values[group.codes[told]]),
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
