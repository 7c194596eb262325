// A run: its charts, its network and its tables, wired to one another.

/** The delay that most messages have, roughly: by which slow motion goes. */
function typicalDelay({sent, until, fate}) {
  const delays = [];
  for (let k = 0; k < sent.length; k++) if (fate[k] === FATES.arrived) delays.push(until[k] - sent[k]);
  delays.sort((a, b) => a - b);
  return delays.length ? delays[delays.length >> 1] : 0;
}

function showRun(run) {
  const article = document.getElementById(run.key);
  const part = (name) => article.querySelector(`section.${name}`);
  if (run.messages) run.messages.typical = typicalDelay(run.messages);
  const motion = part("motion");
  const network = new Network(motion.querySelector("canvas"), run);
  network.resize();
  const player = new Player(motion, run, network);
  const panel = new AgentPanel(motion, run, network);
  panel.player = player;
  if (run.trace.time.length > 1) {
    const charts = errorCharts(part("error"), run.metrics, {
      lines: (metric, axis) => [{name: "this run", x: run.trace[axis], y: run.trace[metric]}],
      levels: (metric) => run.metrics.find((each) => each.kind === metric).levels,
      samples: run.trace,
      seek: (time) => player.seek(time),
    });
    player.onTime((time) => {
      charts[0].setCursor(time);
      charts[1].setCursor(run.trace.communications[lastAtMost(run.trace.time, time)]);
    });
  } else {
    part("error").append(el("p", {className: "note"}, "Nobody sends anything: there is one sample, and no curve."));
    part("error").querySelector(".pair").remove();
  }
  const distributions = part("distributions");
  const delay = distributions.querySelector('[data-chart="delay"]');
  if (run.delay) {
    distributionChart(delay, run.delay, `delay of ${run.delay.total.toLocaleString("en")} messages (s)`);
    distributionChart(distributions.querySelector('[data-chart="age"]'), run.age, `age of ${run.age.total.toLocaleString("en")} copies at the end (s)`);
  } else distributions.querySelector(".pair").remove();
  showAgents(part("agents"), run, panel);
  article.report = {run, network, player, panel};
}

/** Counts, and whatever else is known of each agent: sorted in a chart, and as a table. */
function showAgents(section, run, panel) {
  const columns = {...run.counts, ...run.agents};
  const names = Object.keys(columns).filter((name) => !Array.isArray(columns[name]));
  let chosen = names[0];
  const chart = new Chart(section.querySelector(".chart"), (colours) => {
    const values = columns[chosen];
    const order = Array.from(values, (_, i) => i).filter((i) => !Number.isNaN(values[i]));
    order.sort((a, b) => values[a] - values[b]);
    return {
      data: [{
        type: "scatter", mode: order.length > 400 ? "lines" : "lines+markers",
        x: order.map((_, k) => k + 1), y: order.map((i) => values[i]),
        customdata: order, text: order.map((i) => forPlotly(panel.name(i))),
        line: {shape: "hvh", color: colours.lines[0], width: 1.4}, marker: {size: 4.5},
        hovertemplate: "agent %{text}: %{y:,}<extra></extra>",
      }],
      layout: layoutOf(colours, `agents, sorted`, {title: {text: chosen.replaceAll("_", " "), standoff: 8}, rangemode: "tozero"}, {margin: {l: 62, r: 12, t: 10, b: 48}}),
    };
  });
  chart.on("plotly_click", ({points}) => panel.show(points[0].customdata));
  section.querySelector(".controls").append(chooser("show", names.map((name) => name.replaceAll("_", " ")), (i) => {
    chosen = names[i];
    chart.refresh();
  }));
  const agents = Array.from({length: run.network.x.length}, (_, i) => panel.name(i));
  const table = sortableTable({agent: agents, ...columns}, {rows: 8, pick: (row) => panel.show(row)});
  section.querySelector(".rows").append(table);
}

/** The curves of several runs in one pair of charts. */
function showOverview(runs) {
  const article = document.getElementById("overview");
  const shared = runs[0].metrics.filter((metric) => runs.every((run) => metric.kind in run.trace));
  if (!shared.length) return article.remove();
  return errorCharts(article.querySelector("section"), shared, {
    lines: (metric, axis) => runs.map((run) => ({name: forPlotly(run.title), x: run.trace[axis], y: run.trace[metric]})),
  });
}
