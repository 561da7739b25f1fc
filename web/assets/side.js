// Two cells side by side: conditions, numbers, and packets with the same axes. Both are named in the address.
"use strict";
(async () => {
  const byId = (id) => document.getElementById(id);
  const note = byId("side-note");
  const make = (name, text, attributes = {}) => {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const root = new URL("../../", location.href);
  // Nothing but the folder of a cell of this site is asked for.
  const FOLDER = /^runs\/[\w-]+\/p(?:\/(?!\.)[\w.~@=+-]+){3}$/;
  const words = new URLSearchParams(location.search);
  const folders = ["a", "b"].map((key) => words.get(key) || "");
  if (!folders.some(Boolean)) return;
  if (!folders.every((folder) => FOLDER.test(folder))) { note.textContent = "The address of this page does not name two cells of this site."; return; }
  if (location.protocol === "file:") { note.textContent = "This page needs a web server: ./run.py site … --serve shows this site."; return; }

  const load = async (folder) => {
    const answer = await fetch(new URL(`${folder}/index.html`, root));
    if (!answer.ok) throw new Error(`there is no cell ${folder} (${answer.status})`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const data = (id) => JSON.parse(page.getElementById(id)?.textContent || "[]");
    return { ...data("beside"), runs: data("repetitions"), folder: new URL(`${folder}/`, root).href };
  };
  let cells;
  try {
    cells = await Promise.all(folders.map(load));
  } catch (failed) {
    note.textContent = `The cells could not be loaded: ${failed.message}.`;
    return;
  }

  const [a, b] = cells;
  note.hidden = true;
  byId("sides").hidden = false;
  document.title = `${a.title} beside ${b.title}`;
  for (const [at, cell] of cells.entries()) {
    const facts = new Map(cell.facts);
    const head = make("div", "", { class: "side" });
    const title = make("h2", "");
    title.append(make("a", cell.title, { href: `${cell.folder}index.html` }));
    head.append(make("p", at ? "second" : "first", { class: "dim" }), title, make("p", `${facts.get("campaign")}, ${facts.get("clock")}; ${facts.get("outcome")}`));
    byId("sides-heads").append(head);
  }
  const swapped = new URLSearchParams({ a: folders[1], b: folders[0] });
  byId("sides-bar").append(make("a", "Swap", { href: `?${swapped}` }));

  const row = (table, label, cellsOfRow) => {
    const line = byId(table).tBodies[0].insertRow();
    line.append(make("th", label, { scope: "row" }), ...cellsOfRow.map(([text, kind]) => make("td", text, { class: kind })));
  };
  const metrics = cells.map((cell) => new Map(cell.metrics.map(([label, mean, text]) => [label, { mean, text }])));
  for (const label of new Set(metrics.flatMap((each) => [...each.keys()]))) {
    const [first, second] = metrics.map((each) => each.get(label));
    const change = first && second && first.mean ? (100 * (second.mean - first.mean)) / Math.abs(first.mean) : NaN;
    const shown = Number.isFinite(change) ? `${change > 0 ? "+" : change < 0 ? "−" : ""}${Math.abs(change).toFixed(Math.abs(change) < 10 ? 1 : 0)} %` : "–";
    row("sides-metrics", label, [[first?.text ?? "–", "number"], [second?.text ?? "–", "number"], [shown, "number"]]);
  }
  const facts = cells.map((cell) => new Map(cell.facts));
  for (const name of new Set(facts.flatMap((each) => [...each.keys()]))) {
    const [first, second] = facts.map((each) => each.get(name));
    const differ = first && second && first !== second;
    row("sides-facts", differ ? `≠ ${name}` : name, [[first || "not known", "text"], [second || "not known", "text"]]);
  }

  if (!window.packetPlots) return;
  const apart = ["campaign", "clock"].find((name) => facts[0].get(name) !== facts[1].get(name));
  const names = cells.map(({ title }, at) => (a.title === b.title ? `${title} (${apart ? facts[at].get(apart) : at ? "second" : "first"})` : title));
  const columns = cells.map((cell, at) => {
    const side = make("div", "", { class: "side" });
    const place = make("div", "");
    side.append(make("h3", names[at]), place);
    byId("sides-plots").append(side);
    return { place, runs: cell.runs, folder: cell.folder, title: names[at], name: names[at].replace(/[^\w.+-]+/g, "_"), size: cell.size };
  });
  if (columns.some(({ runs }) => runs.length)) packetPlots.show(columns, byId("plots-note"));
})();
