// One agent: its figures, its course, its neighbours and its messages.

const MOST_NEIGHBOURS = 24;
const MOST_MESSAGES = 200;
const WHAT = ["request", "reply", "hello", "round"];

class AgentPanel {
  constructor(section, run, network) {
    this.node = section.querySelector("aside.agent");
    this.more = section.querySelector(".agent.messages");
    this.run = run;
    this.network = network;
    this.field = el("input", {type: "text", size: 8, placeholder: "name", onchange: () => this.find(this.field.value)});
    section.querySelector(".controls").append(el("label", {}, "agent ", this.field));
    const {canvas} = network;
    canvas.addEventListener("click", ({offsetX, offsetY}) => this.show(network.near(offsetX, offsetY)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.show(-1);
  }

  name(i) {
    const {names, agents} = this.run.network;
    return names ? names[i] : String(agents[i]);
  }

  find(text) {
    const wanted = text.trim();
    for (let i = 0; i < this.network.n; i++) if (this.name(i) === wanted) return this.show(i);
    this.more.replaceChildren();
    this.node.replaceChildren(el("p", {className: "note"}, wanted ? `No agent ${wanted} is drawn.` : ""));
  }

  key(event) {
    const moves = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};
    const move = moves[event.key];
    if (event.key === " ") this.player.toggle();
    else if (event.key === "Escape") this.show(-1);
    else if (move) this.show(this.network.selected < 0 ? 0 : this.network.beside(this.network.selected, ...move));
    else return;
    event.preventDefault();
  }

  show(i) {
    this.network.select(i);
    this.field.value = i < 0 ? "" : this.name(i);
    this.more.replaceChildren(...(i < 0 ? [] : this.messages(i)));
    if (i < 0) {
      this.node.replaceChildren(el("p", {className: "note"}, "No agent is chosen."));
      return;
    }
    this.node.replaceChildren(
      el("h3", {}, `Agent ${this.name(i)}`), this.figures(i), ...this.course(i), ...this.neighbours(i),
    );
  }

  figures(i) {
    const rows = Object.entries({...this.run.agents, ...this.run.counts}).map(([name, values]) =>
      el("div", {}, el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, shown(values[i]))));
    return el("dl", {}, ...rows);
  }

  /** What the colours show, for this agent over time. */
  course(i) {
    const {n} = this.network;
    const colouring = this.network.colouring;
    if (colouring.times.length < 3) return [];
    const y = Array.from(colouring.times, (_, k) => colouring.values.at(k * n + i));
    const node = el("div", {className: "chart small"});
    new Chart(node, (colours) => ({
      data: [{type: "scatter", mode: "lines", x: colouring.times, y, line: {shape: "hv", color: colours.lines[0], width: 1.6}, hovertemplate: "%{y:.4g} at %{x:.5g} s<extra></extra>"}],
      layout: layoutOf(colours, "simulated time (s)", {type: colouring.values.log ? "log" : "linear"}, {margin: {l: 44, r: 6, t: 6, b: 36}}),
    }), true);
    return [el("h4", {}, `Its ${colouring.label}`), node];
  }

  neighbours(i) {
    const {links, weights} = this.network;
    const found = [];
    for (let e = 0; e < links.length; e += 2) {
      if (links[e] === i) found.push([links[e + 1], weights.at(e / 2)]);
      else if (links[e + 1] === i) found.push([links[e], weights.at(e / 2)]);
    }
    found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const buttons = found.slice(0, MOST_NEIGHBOURS).map(([j, weight]) =>
      el("button", {type: "button", title: `${this.name(j)}, weight ${shown(weight)}`, onclick: () => this.show(j)}, this.name(j)));
    const more = found.length > MOST_NEIGHBOURS ? `, the ${MOST_NEIGHBOURS} strongest` : "";
    return [el("h4", {}, `Neighbours (${found.length.toLocaleString("en")}${more})`), el("div", {className: "neighbours"}, ...buttons)];
  }

  messages(i) {
    const {messages, inspect} = this.run;
    const heading = (text) => el("h4", {}, text);
    if (!messages) return [heading("Messages"), el("p", {className: "note"}, "None were recorded: run with record: {events: true}.")];
    const {from, to, sent, until, fate, what, start, end} = messages;
    const columns = {time: [], "": [], peer: [], what: [], fate: []};
    for (let k = 0; k < sent.length && columns.time.length < MOST_MESSAGES; k++) {
      if (from[k] !== i && to[k] !== i) continue;
      const out = from[k] === i;
      columns.time.push(sent[k]);
      columns[""].push(out ? "to" : "from");
      columns.peer.push(this.name(out ? to[k] : from[k]));
      columns.what.push(WHAT[what[k]] ?? "");
      columns.fate.push(fate[k] === FATES.arrived ? shownTime(until[k] - sent[k]) : fate[k] === FATES.lost ? "lost" : "under way");
    }
    columns.time = Float64Array.from(columns.time);
    const window = `sent from ${shownTime(start)} to ${shownTime(end)}`;
    const command = el("pre", {className: "command"}, el("code", {}, `${inspect} --agent ${this.name(i)}`));
    const table = sortableTable(columns, {rows: MOST_MESSAGES});
    table.classList.add("scroll");
    return [heading(`Messages ${window}`), table, heading("The whole story"), command];
  }
}
