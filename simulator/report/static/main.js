// Start: unpack the data and show each item.

const {items} = unpack(JSON.parse(document.getElementById("data").textContent));
for (const item of items) {
  if (item.type === "run") showRun(item);
  else showSweep(item);
}
const runs = items.filter((item) => item.type === "run");
if (runs.length > 1) showOverview(runs);
document.documentElement.dataset.ready = performance.now().toFixed(0);
// Plotly takes a second to start: first let the reader see all the rest.
requestAnimationFrame(() => setTimeout(startPlotly));
