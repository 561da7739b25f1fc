// Theme, filters of the matrices (all of their state is in the address), run selector, links to lines of a log.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (name, text, attributes = {}) => {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // ---- theme ----
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const theme = byId("theme");
  const label = () => { theme.textContent = isDark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`); };
  theme.hidden = false;
  label();
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* it holds for this page only */ }
    label();
    dispatchEvent(new Event("themechange"));
  });
  system.addEventListener("change", () => { label(); dispatchEvent(new Event("themechange")); });

  // ---- on paper: the light theme, and plots that nobody has scrolled to ----
  let onPaper = false, onScreen;
  const paper = (on) => {
    if (on === onPaper) return;
    onPaper = on;
    if (on) onScreen = root.dataset.theme ?? "";
    root.dataset.theme = on ? "light" : onScreen;
    dispatchEvent(new Event("themechange"));
    dispatchEvent(new CustomEvent("paper", { detail: on }));
  };
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  matchMedia("print").addEventListener("change", ({ matches }) => paper(matches));

  // ---- a click on a line of a log puts it into the address ----
  for (const log of document.querySelectorAll(".lines")) {
    log.addEventListener("click", (event) => {
      const line = event.target.closest("span[id]");
      if (line && !String(getSelection())) location.hash = line.id;
    });
  }

  // ---- qvis fetches a qlog by itself, so only from a public site; it knows a sequence of records by its suffix ----
  const qvis = byId("qvis");
  const isPublic = location.protocol === "https:" && location.hostname.includes(".");
  if (qvis && isPublic) {
    for (const log of document.querySelectorAll("a[data-qvis]")) {
      const row = log.closest("tr").cells[0].textContent;
      qvis.append(make("a", `${log.textContent} of repetition ${row} in qvis`, { href: `https://qvis.quictools.info/?file=${encodeURIComponent(log.href + (log.href.endsWith(".sqlog.json") ? "#.sqlog" : ""))}` }), " ");
    }
  }

  // ---- any two campaigns to compare, of those that the table has ----
  const picker = byId("compare");
  if (picker) {
    const twos = [...document.querySelectorAll("tr[data-after]")].map((row) => ({
      ...row.dataset, words: [...row.cells].map((cell) => cell.textContent), address: row.querySelector("a").href,
    }));
    const after = make("select", "", { id: "after" }), before = make("select", "", { id: "before" });
    const go = make("button", "Compare", { type: "button" });
    const fill = (select, options) => select.replaceChildren(...new Map(options.map(([value, words]) => [value, make("option", words, { value })])).values());
    const partners = () => fill(before, twos.filter((two) => two.after === after.value).map((two) => [two.before, two.words[1]]));
    fill(after, twos.map((two) => [two.after, two.words[0]]));
    partners();
    after.addEventListener("change", partners);
    go.addEventListener("click", () => { location.href = twos.find((two) => two.after === after.value && two.before === before.value).address; });
    picker.append(make("label", "Compare", { for: "after" }), after, make("label", "against", { for: "before" }), before, go);
    picker.hidden = false;
  }

  const own = new URL("./", document.currentScript.src);
  const script = (name) => new Promise((done, failed) => {
    const element = make("script", "", { src: new URL(name, own).href });
    element.addEventListener("load", done);
    element.addEventListener("error", failed);
    document.head.append(element);
  });

  // ---- the sequence diagram is loaded when the page is idle, or after the deferred scripts, which it needs, if the address names one of its packets ----
  const named = new URLSearchParams(location.search).has("packet");
  if (byId("sequence-view")) {
    const load = () => script("sequence.js");
    if (named) document.addEventListener("DOMContentLoaded", load); else addEventListener("load", () => (window.requestIdleCallback ? requestIdleCallback(load, { timeout: 3000 }) : load()));
  } else if (named && byId("beside")) {
    document.querySelector("h1").after(make("p", "The address of this page names a packet, but this page has no sequence diagram.", { class: "note" }));
  }

  // ---- two cells to see side by side: the first one is remembered until the second one is chosen ----
  const home = new URL("../../", document.currentScript.src);
  const remembered = () => { try { return JSON.parse(sessionStorage.getItem("first")); } catch { return null; } };
  const remember = (first) => { try { if (first) sessionStorage.setItem("first", JSON.stringify(first)); else sessionStorage.removeItem("first"); } catch { /* then both must be of this page */ } };
  const folderOf = (address) => decodeURIComponent(new URL(address, document.baseURI).href.split(/[?#]/)[0].slice(home.href.length)).replace(/\/(index\.html)?$/, "");
  const choosing = { on: false, first: remembered(), tell: () => {} };
  const pick = (folder, title) => {
    const { first } = choosing;
    choosing.first = first ? null : { folder, title };
    choosing.on = !first;
    remember(choosing.first);
    choosing.tell();
    if (first) location.href = new URL(`compare/cells/index.html?${new URLSearchParams({ a: first.folder, b: folder })}`, home).href;
  };
  const button = byId("pick");
  if (button) {
    const own = JSON.parse(byId("beside").textContent);
    choosing.tell = () => { button.textContent = choosing.first ? `Compare with ${choosing.first.title}` : "Compare with another cell"; };
    button.addEventListener("click", () => {
      const begin = !choosing.first;
      pick(folderOf(location.href), own.title);
      if (begin) location.href = document.querySelector(".crumbs a").href;
    });
    choosing.tell();
    button.hidden = false;
  }

  // ---- failures: only rows with all words, which are in the address ----
  const finder = byId("search");
  if (finder && document.querySelector("td.text")) {
    const rows = [...document.querySelectorAll("section:not(:has(#causes)) tbody tr")];
    const field = make("input", "", { type: "search", id: "words", placeholder: "text …" });
    const count = make("span", "", { id: "told", role: "status" });
    field.value = new URLSearchParams(location.search).get("q") || "";
    const filter = () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) { row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word)); left += !row.hidden; }
      count.textContent = wanted.length ? `${left} of ${rows.length} ${rows.length === 1 ? "row" : "rows"}` : "";
    };
    field.addEventListener("input", () => {
      filter();
      history.replaceState(null, "", location.pathname + (field.value ? `?${new URLSearchParams({ q: field.value })}` : "") + location.hash);
    });
    finder.append(make("label", "Search names, codes and reasons", { for: "words" }), field, count);
    finder.hidden = false;
    filter();
  }

  // ---- what only the start page has ----
  const aboutText = byId("about");
  if (!aboutText) return;
  const about = JSON.parse(aboutText.textContent);
  const chooser = byId("campaigns");
  chooser.disabled = false;
  chooser.addEventListener("change", () => { location.href = chooser.value + location.search; });
  // The list of all campaigns grows with each of them, and is loaded when somebody is about to choose.
  const offer = async () => {
    for (const kind of ["pointerenter", "touchstart", "focus"]) chooser.removeEventListener(kind, offer);
    await script("../../runs/campaigns.js");
    const here = new URL(chooser.value, document.baseURI).href;
    const others = window.campaignChoices.map(([address, words]) => make("option", words, { value: new URL(`../../${address}`, own).href }));
    if (others.some((each) => each.value === here)) chooser.replaceChildren(...others); else chooser.append(...others);
    chooser.value = [...chooser.options].find((each) => new URL(each.value, document.baseURI).href === here).value;
  };
  for (const kind of ["pointerenter", "touchstart", "focus"]) chooser.addEventListener(kind, offer, { passive: true });
  const stale = byId("stale");
  if (stale) stale.hidden = Date.now() - Date.parse(stale.dataset.started) <= 36 * 3600e3;

  // The matrices as they came, once.
  const matrices = [...document.querySelectorAll("table.numbers")].map((table) => ({
    test: table.closest("section").dataset.test, rows: [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1, -1)),
  }));
  const tests = document.querySelector("table.tests");
  // In a large campaign, tests that succeeded are counted: they are all those that are not named.
  const counted = tests?.dataset.counted !== undefined;
  const listed = counted ? [...document.querySelectorAll("#tests .words dt")].map((word) => word.textContent) : [];
  const groupsOf = (cell) => {
    const groups = [...cell.querySelectorAll("i")].map((group) => [group.className, group.textContent.split(" ").slice(1)]);
    const named = new Set(groups.flatMap(([outcome, list]) => (outcome === "succeeded" ? [] : list)));
    return counted ? groups.map(([outcome, list]) => [outcome, outcome === "succeeded" ? listed.filter((short) => !named.has(short)) : list]) : groups;
  };
  const wordsOf = (outcome, list) => (counted && outcome === "succeeded" ? String(list.length) : list.join(" "));
  // What the tests' matrix says is read when something is filtered for the first time.
  let pairs;
  const readPairs = () => (tests ? [...tests.tBodies[0].rows].map((row) => [...row.cells].slice(1, -1).map((cell) => ({
    link: cell.firstElementChild, groups: groupsOf(cell),
  }))) : []);
  const first = document.querySelector("table.matrix");
  const names = (cells) => [...cells].map((cell) => cell.textContent);
  const servers = names(first.tHead.rows[0].cells).slice(1).filter((name) => name !== "all servers");
  const clients = names([...first.tBodies[0].rows].map((row) => row.cells[0]));
  const cases = Object.values(about.tests);
  const controls = [...new Set(Object.values(about.cc))].sort();
  const GROUPS = [
    ["client", "Client", clients], ["server", "Server", servers], ["test", "Test case", cases],
    ["outcome", "Outcome", Object.keys(about.states)], ["cc", "Congestion control", controls],
  ];

  // ---- state <-> address ----
  const read = () => {
    const words = new URLSearchParams(location.search);
    const state = { q: (words.get("q") || "").trim() };
    for (const [key, , known] of GROUPS) state[key] = known.filter((name) => words.getAll(key).includes(name));
    return state;
  };
  const write = (state) => {
    const words = new URLSearchParams();
    for (const [key] of GROUPS) for (const name of state[key]) words.append(key, name);
    if (state.q) words.set("q", state.q);
    const text = words.toString();
    return location.pathname + (text ? `?${text}` : "") + location.hash;
  };

  // ---- showing ----
  const sheet = new CSSStyleSheet();
  const pointed = new CSSStyleSheet();
  document.adoptedStyleSheets = [sheet, pointed];
  const abbreviated = Object.fromEntries(Object.entries(about.tests).map(([short, name]) => [name, short]));

  // Why runs did not succeed: fetched when somebody searches, and searched from then on.
  const reasons = new Map();
  let asked = false;
  const fetchReasons = async () => {
    asked = true;
    if (location.protocol === "file:") return;
    try {
      const { texts, cells } = await (await fetch("data/reasons.json")).json();
      for (const [test, server, client, ...numbers] of cells) reasons.set(`${test} ${server} ${client}`, numbers.map((number) => texts[number]).join("\n").toLowerCase());
      apply(state);
    } catch { /* names and outcomes are searched alone */ }
  };

  const apply = (state) => {
    if (state.q && !asked) fetchReasons();
    const wanted = (key, name) => !state[key].length || state[key].includes(name);
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const server = servers.map((name) => wanted("server", name) && wanted("cc", about.cc[name]));
    const client = clients.map((name) => wanted("client", name));
    const rules = [];
    server.forEach((on, column) => { if (!on) rules.push(`.matrix tr > :nth-child(${column + 2})`); });
    client.forEach((on, row) => { if (!on) rules.push(`.matrix tbody tr:nth-child(${row + 1})`); });
    for (const { test } of matrices) if (!wanted("test", test)) rules.push(`[data-test="${CSS.escape(test)}"]`);
    sheet.replaceSync(rules.map((rule) => `${rule} { display: none }`).join("\n"));

    let count = 0;
    const matches = (row, column, test, state, code) => wanted("outcome", state) && words.every((word) =>
      clients[row].includes(word) || servers[column].includes(word) || test.includes(word) ||
      abbreviated[test].toLowerCase() === word || (code || state).includes(word) ||
      reasons.get(`${test} ${servers[column]} ${clients[row]}`)?.includes(word));
    for (const { test, rows } of matrices) {
      const on = wanted("test", test);
      for (const [row, cells] of rows.entries()) {
        for (const [column, cell] of cells.entries()) {
          const visible = matches(row, column, test, cell.classList[0]);
          cell.classList.toggle("off", !visible);
          count += on && visible && server[column] && client[row];
        }
      }
    }
    const update = (row, column, { link, groups }) => {
      if (!link || !groups.length) return;
      const shown = [];
      for (const [outcome, list] of groups) {
        const left = list.filter((short) => wanted("test", about.tests[short]) && matches(row, column, about.tests[short], outcome));
        if (left.length) shown.push([outcome, left]);
        if (server[column] && client[row]) count += left.length;
      }
      const text = shown.map(([outcome, list]) => `${outcome} ${list.join(" ")}`).join("|");
      if (link.dataset.shown === text) return;
      link.dataset.shown = text;
      link.replaceChildren(...shown.flatMap(([outcome, list]) => [make("i", `${about.states[outcome][0]} ${wordsOf(outcome, list)}`, { class: outcome }), " "]));
      link.parentElement.classList.toggle("off", !shown.length);
    };
    pairs ??= readPairs();
    for (const [row, cells] of pairs.entries()) {
      for (const [column, cell] of cells.entries()) update(row, column, cell);
    }
    for (const button of filters.querySelectorAll("button[data-key]")) {
      button.setAttribute("aria-pressed", String(state[button.dataset.key].includes(button.value)));
    }
    for (const [key, title, summary] of menus) {
      const some = state[key].slice(0, 2).map((name) => (key === "outcome" ? about.states[name][1] : name)).join(", ");
      summary.textContent = some ? `${title}: ${some}${state[key].length > 2 ? ` + ${state[key].length - 2}` : ""}` : title;
      summary.classList.toggle("set", Boolean(some));
    }
    if (search !== document.activeElement || search.value.trim() !== state.q) search.value = state.q;
    const filtered = write(state).includes("?");
    told.textContent = filtered ? `${count} ${count === 1 ? "cell matches" : "cells match"}` : "";
    all.hidden = !filtered;
  };

  // ---- controls ----
  const filters = byId("filters");
  const search = make("input", "", { type: "search", id: "q", "aria-label": "Text in names, outcomes or reasons", placeholder: "text …" });
  let state = read();
  const change = (next, instead) => {
    state = next;
    history[instead ? "replaceState" : "pushState"](null, "", write(state));
    apply(state);
  };
  const menus = [];
  for (const [key, title, known] of GROUPS) {
    if (known.length < 2) continue;
    const menu = make("details", "", { name: "filter" });
    const summary = make("summary", title);
    const choices = make("div", "", { class: "choices", role: "group", "aria-label": title });
    for (const name of known) {
      const text = key === "outcome" ? `${about.states[name][0]} ${about.states[name][1]}` : name;
      const button = make("button", text, { type: "button", "aria-pressed": "false", "data-key": key });
      button.value = name;
      choices.append(button);
    }
    menu.append(summary, choices);
    menus.push([key, title, summary]);
    filters.append(menu);
  }
  const all = make("button", "Show all", { type: "button", id: "all" });
  const told = make("span", "", { id: "told", role: "status" });
  const copy = make("button", "Copy link to this view", { type: "button", id: "copy" });
  const two = make("button", "Compare two cells", { type: "button", id: "two", "aria-pressed": "false" });
  all.hidden = true;
  filters.append(search, all, told, two, copy);
  const close = () => { for (const menu of filters.querySelectorAll("details[open]")) menu.open = false; };
  addEventListener("click", ({ target }) => { if (!target.closest("#filters details")) close(); });
  filters.addEventListener("keydown", ({ key, target }) => {
    const menu = key === "Escape" && target.closest("details[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });
  filters.addEventListener("click", ({ target }) => {
    if (target.id === "all") change({ q: "", client: [], server: [], test: [], outcome: [], cc: [] });
    if (!target.dataset.key) return;
    const { key } = target.dataset;
    const chosen = new Set(state[key]);
    if (!chosen.delete(target.value)) chosen.add(target.value);
    const known = GROUPS.find((group) => group[0] === key)[2];
    change({ ...state, [key]: known.filter((name) => chosen.has(name)) });
  });
  let typing = 0;
  search.addEventListener("input", () => {
    const soon = Date.now() - typing < 2000;
    typing = Date.now();
    change({ ...state, q: search.value.trim() }, soon);
  });
  addEventListener("popstate", () => { state = read(); apply(state); });
  filters.hidden = false;
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      told.textContent = "The link is in the clipboard";
    } catch {
      told.textContent = `The clipboard cannot be used here; the link: ${location.href}`;
    }
  });

  // ---- a matrix to take away, as it is shown ----
  const date = document.querySelector(".campaign time").textContent;
  for (const table of document.querySelectorAll("table.matrix")) {
    const section = table.closest("section"), test = section.dataset.test || "tests";
    const forms = make("p", "Save as ", { class: "forms" });
    for (const form of ["CSV", "LaTeX", "SVG", "PNG"]) {
      const button = make("button", form, { type: "button", "aria-label": `Matrix of ${test} as ${form}` });
      button.addEventListener("click", async () => {
        if (!window.matrixExport) await script("export.js");
        await window.matrixExport(form, table, { test, title: `${test}, ${date}`, name: `${test}-${date.slice(0, 10)}`.replace(/[^\w.+@=~-]+/g, "_") });
      });
      forms.append(button);
    }
    table.parentElement.after(forms);
  }

  // ---- two clicks choose two cells to see side by side ----
  const picking = byId("picking");
  choosing.on = Boolean(choosing.first);
  choosing.tell = () => {
    two.setAttribute("aria-pressed", String(choosing.on));
    picking.hidden = !choosing.on;
    picking.textContent = choosing.first
      ? `First: ${choosing.first.title}. Click the second cell of a measurement, here or in another campaign.`
      : "Click the first cell of a measurement.";
    document.body.classList.toggle("choosing", choosing.on);
    for (const link of document.querySelectorAll(".numbers td > a.chosen")) link.classList.remove("chosen");
    if (choosing.first) for (const link of document.querySelectorAll(".numbers td > a")) if (folderOf(link.href) === choosing.first.folder) link.classList.add("chosen");
  };
  two.addEventListener("click", () => { choosing.on = !choosing.on; choosing.first = null; remember(null); choosing.tell(); });
  const chosen = (link) => {
    const cell = link.closest("td");
    pick(folderOf(link.href), `${servers[cell.cellIndex - 1]} to ${clients[cell.parentElement.sectionRowIndex]}, ${link.closest("section").dataset.test}`);
  };
  addEventListener("click", (event) => {
    const link = choosing.on && event.target.closest?.(".numbers td > a");
    if (link) { event.preventDefault(); chosen(link); }
  });
  choosing.tell();

  // ---- the column under the pointer, and arrow keys from cell to cell ----
  for (const table of document.querySelectorAll("table.matrix")) {
    table.addEventListener("mouseover", ({ target }) => {
      const cell = target.closest("td");
      const column = cell ? cell.cellIndex + 1 : 0;
      pointed.replaceSync(column ? `.matrix thead th:nth-child(${column}) { color: var(--link); text-decoration: underline }` : "");
    });
    table.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      const cell = event.target.closest("td");
      if (!step || !cell || event.ctrlKey || event.metaKey || event.altKey) return;
      let row = cell.parentElement.rowIndex, column = cell.cellIndex;
      for (;;) {
        row += step[0]; column += step[1];
        const next = table.rows[row]?.cells[column];
        if (!next) return;
        const link = next.querySelector("a");
        if (link?.checkVisibility({ checkVisibilityCSS: true })) { link.focus(); event.preventDefault(); return; }
      }
    });
  }
  if (location.search) apply(state);

  // ---- the tests' matrix is not in the first screen: it is shown when the page is idle, so that nobody who scrolls waits for it ----
  const below = byId("tests");
  const show = () => { below.style.contentVisibility = "visible"; };
  if (below) addEventListener("load", () => setTimeout(() => (window.requestIdleCallback || setTimeout)(show), 1000));
})();
