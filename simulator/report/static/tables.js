// Tables that are sorted by a click on a heading, some rows at a time.

const ROWS = 15;

/** A heading that may be broken at its dots. */
function headText(name) {
  return name.replaceAll("_", " ").replaceAll(".", ".\u200b").replace("$", "");
}

/**
 * A sortable table of columns {name: numbers or texts}.  render(name, value, row) may give another
 * element or text for a cell; pick(row) is called for a row that is clicked.
 */
function sortableTable(columns, {render = null, pick = null, rows = ROWS, caption = ""} = {}) {
  const names = Object.keys(columns);
  const count = names.length ? columns[names[0]].length : 0;
  const order = Array.from({length: count}, (_, i) => i);
  const isText = (name) => Array.isArray(columns[name]);
  let visible = rows;
  let sorted = {name: null, down: false};
  const body = el("tbody");
  const note = el("span");
  const more = el("button", {type: "button", onclick: () => { visible += 10 * rows; fill(); }}, "more rows");
  const heads = names.map((name) => {
    const button = el("button", {type: "button", onclick: () => sort(name)}, headText(name));
    return el("th", {scope: "col", className: isText(name) ? "text" : ""}, button);
  });

  function cell(name, row) {
    const value = columns[name][row];
    const special = render && render(name, value, row);
    const text = el("td", {className: isText(name) ? "text" : ""}, special ?? shown(value));
    if (isText(name) && value) text.title = value;
    return text;
  }

  function fill() {
    body.replaceChildren(...order.slice(0, visible).map((row) => {
      const line = el("tr", {}, ...names.map((name) => cell(name, row)));
      if (pick) line.addEventListener("click", () => pick(row));
      return line;
    }));
    more.hidden = visible >= count;
    note.textContent = visible < count ? `${visible.toLocaleString("en")} of ${count.toLocaleString("en")} rows` : "";
  }

  function sort(name) {
    const down = sorted.name === name ? !sorted.down : !isText(name);
    sorted = {name, down};
    const values = columns[name];
    const missing = (value) => value === null || Number.isNaN(value);
    const compare = isText(name)
      ? (a, b) => String(a).localeCompare(String(b), "en", {numeric: true})
      : (a, b) => a - b;
    order.sort((a, b) => {
      if (missing(values[a]) || missing(values[b])) return missing(values[a]) - missing(values[b]) || a - b;
      return (down ? -1 : 1) * compare(values[a], values[b]) || a - b;
    });
    heads.forEach((head, i) => {
      if (names[i] === name) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    fill();
  }

  fill();
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body);
  if (caption) table.prepend(el("caption", {}, caption));
  return el("div", {}, el("div", {className: "wide", tabIndex: 0}, table), el("div", {className: "more"}, more, note));
}
