// The packets of a cell's runs: time-offset, packet numbers, rates, RTT and window, with one time axis for all.
// Several cells stand in columns with the same axes. The files are made by quicsat/site/packets.py.
"use strict";
(() => {
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  const square = (colour) => {
    const [swatch, shape] = ["svg", "rect"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
    for (const [name, value] of Object.entries({ width: 12, height: 12, rx: 2, fill: colour })) shape.setAttribute(name, value);
    swatch.setAttribute("viewBox", "0 0 12 12");
    swatch.setAttribute("aria-hidden", "true");
    swatch.append(shape);
    return swatch;
  };

  const load = async (run) => {
    run.data = await packetFile.load(run.address);
    if (!performance.getEntriesByName("packets-arrived").length) performance.mark("packets-arrived");
  };

  // ---- what is drawn ----
  const PAPER = 700; // width of a page
  const BAND = 12; // height of the band of time shares
  const MIB = 1 / 1048576, M = 1e-6, K = 1e-3;
  const PANELS = [
    { key: "offset", title: "Time-offset, at the server", unit: "MiB", perUnit: 8 * 1048576 / 1e6, slope: "Mbit/s",
      dots: [["sent_time", "sent_offset", MIB, "sent_again", "first", "again"]], marks: true, shares: true,
      key_: [["first", "first transmission"], ["again", "retransmission"], ["grey", "other repetitions"]] },
    { key: "number", title: "Packet number, forward, after the handshake", unit: "", perUnit: 1, slope: "packets/s",
      dots: [["forward_time", "forward_number", 1, "forward_lost", "first", "lost"]],
      key_: [["first", "arrived"], ["lost", "lost"]] },
    { key: "rate", title: "Rates, over one second", unit: "Mbit/s", lines: [["rate_sent", M, "again"], ["rate_goodput", M, "first"], ["rate_back", M, "acks"]],
      key_: [["again", "sent by the server"], ["first", "goodput at the client"], ["acks", "return path"]] },
    { key: "rtt", title: "Round-trip time, at the server", unit: "ms", lines: [["rtt", 1000, "first"]], key_: [["first", "until acknowledged"]] },
    { key: "window", title: "In flight and congestion window", unit: "kB", lines: [["in_flight", K, "first"], ["cwnd", K, "again"], ["threshold", K, "acks"]],
      ticks: "given_up_time", states: true,
      key_: [["first", "bytes in flight"], ["again", "congestion window, from the qlog or the kernel"], ["acks", "slow start threshold", "threshold_time"], ["lost", "a packet was declared lost", "given_up_time"]] },
    { key: "flow", title: "Flow control, at the server", unit: "MiB", needs: "flow_sent_time", lines: [["flow_sent", MIB, "first"], ["flow_limit", MIB, "acks"]],
      ticks: "flow_blocked_time", key_: [["first", "sent for the first time, all streams"], ["acks", "limit of the connection, from the client"], ["lost", "the server reports to be blocked", "flow_blocked_time"]] },
    { key: "back", title: "Packet number, return path, after the handshake", unit: "", perUnit: 1, slope: "packets/s",
      dots: [["back_time", "back_number", 1, "back_lost", "acks", "lost"]], key_: [["acks", "arrived"], ["lost", "lost"]] },
  ];
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  let ink = {};
  const readInk = () => { ink = Object.fromEntries(["ground", "text", "dim", "line", "first", "again", "acks", "lost", "grey"].map((name) => [name, style(name)])); };
  readInk();

  // columns: [{place: where the first panel goes, rest: where the others go, if not there, runs: as in the cell's page, folder: of their files, title, name, size in bytes}]
  const show = async (columns, note) => {
    // ---- what is shown: from the address, and back ----
    const words = new URLSearchParams(location.search);
    for (const [at, column] of columns.entries()) {
      const { runs } = column;
      column.after = at ? String(at + 1) : "";
      for (const run of runs) run.address = column.folder + run.file;
      column.middle = (runs.find((run) => run.median) || runs[0])?.number;
      const wanted = words.getAll(`rep${column.after}`).map(Number).filter((number) => runs.some((run) => run.number === number));
      column.shown = new Set(wanted.length ? wanted : runs.map((run) => run.number));
      column.bright = Number(words.get(`bright${column.after}`)) || column.middle;
      if (!column.shown.has(column.bright)) column.bright = [...column.shown][0];
    }
    const range = /^(-?[\d.]+)-(-?[\d.]+)$/.exec(words.get("x") || "");
    let view = range && Number(range[2]) > Number(range[1]) ? [Number(range[1]), Number(range[2])] : null;
    let saving = 0;
    const save = () => {
      clearTimeout(saving);
      saving = setTimeout(() => {
        const next = new URLSearchParams(location.search);
        next.delete("x");
        for (const { after } of columns) for (const key of ["rep", "bright"]) next.delete(key + after);
        if (view) next.set("x", view.map((value) => value.toFixed(4).replace(/\.?0+$/, "")).join("-"));
        for (const { runs, shown, bright, middle, after } of columns) {
          if (shown.size < runs.length) for (const number of shown) next.append(`rep${after}`, number);
          if (bright !== middle) next.set(`bright${after}`, bright);
        }
        const text = next.toString();
        history.replaceState(null, "", location.pathname + (text ? `?${text}` : "") + location.hash);
      }, 150);
    };

    const loaded = ({ runs, shown, bright }) => runs.filter((run) => run.data && shown.has(run.number)).sort((a, b) => (a.number === bright) - (b.number === bright));
    const whole = () => {
      let end = 0;
      for (const { data } of columns.flatMap(loaded)) {
        for (const name of ["sent_time", "rate_sent_time"]) { const times = data.column(name); if (times.length) end = Math.max(end, times[times.length - 1]); }
      }
      return [0, end * 1.02 || 1];
    };

    const layersOf = (panel, column) => loaded(column).flatMap(({ data, number }) => (panel.dots || []).flatMap(([times, values, factor, flags, usual, special]) => {
      const layer = { x: data.column(times), y: data.column(values, factor), run: number };
      if (number !== column.bright) return [{ ...layer, colour: scatter.colour(ink.grey), size: 1 }];
      const flag = data.column(flags);
      return [
        { ...layer, flags: flag, value: 0, ink: usual, colour: scatter.colour(ink[usual]), size: 2 },
        { ...layer, flags: flag, value: 1, ink: special, colour: scatter.colour(ink[special]), size: 3 },
      ];
    }));
    const linesOf = (panel, column) => loaded(column).flatMap(({ data, number }) => (panel.lines || []).map(([name, factor, colour]) => (
      { x: data.column(`${name}_time`), y: data.column(`${name}_value`, factor), colour: number === column.bright ? ink[colour] : ink.grey, width: number === column.bright ? 2 : 1, run: number, name })));
    const curvesOf = (panel, column) => (panel.dots ? layersOf : linesOf)(panel, column);
    const isEmpty = (panel) => !columns.some((column) => curvesOf(panel, column).some(({ x, y }) => (panel.dots ? x.length : x.length > 1 && y.some(Boolean))));
    const heights = (panel, from, to) => {
      let low = panel.dots ? Infinity : 0, high = -Infinity;
      for (const { x, y } of columns.flatMap((column) => curvesOf(panel, column))) {
        const end = Math.min(scatter.lower(x, to) + 1, x.length);
        for (let i = Math.max(scatter.lower(x, from) - 1, 0); i < end; i++) { const value = y[i]; if (value > high) high = value; if (value < low) low = value; }
      }
      if (!(high >= low)) return [0, 1];
      const room = (high - low || Math.abs(high) || 1) * 0.04;
      return [panel.dots ? low - room * (panel.shares && has("share") ? 3 : 1) : 0, high + room];
    };

    const drawLines = (plot, panel, column) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      const ratio = devicePixelRatio || 1;
      for (const { x, y, colour, width } of linesOf(panel, column)) {
        ctx.beginPath();
        const end = Math.min(scatter.lower(x, plot.scales.x.max) + 1, x.length);
        for (let i = Math.max(scatter.lower(x, plot.scales.x.min) - 1, 0); i < end; i++) ctx.lineTo(plot.valToPos(x[i], "x", true), plot.valToPos(y[i], "y", true));
        ctx.strokeStyle = colour;
        ctx.lineWidth = width * ratio;
        ctx.stroke();
      }
      ctx.restore();
    };
    // Lines with a word each, in the pixels of the canvas: requests, first and last byte, objectives.
    const marksOf = (plot, { runs, bright, size }) => {
      const run = runs.find(({ number }) => number === bright);
      if (!run?.data) return [];
      const { left, top, width, height } = plot.bbox;
      const ratio = devicePixelRatio || 1;
      const marks = [];
      [["request_sent", "request"], ["request_first_byte", "first byte"], ["request_last_byte", "last byte"]].forEach(([name, text], step) => {
        const x = plot.valToPos(run.data.column(name)[0], "x", true);
        if (!(x >= left && x <= left + width)) return;
        const last = text === "last byte";
        marks.push({ x0: x, y0: top, x1: x, y1: top + height, text, end: last, x: x + (last ? -4 : 4) * ratio, y: last ? top + height - (BAND + 10) * ratio : top + height * 0.3 + 13 * step * ratio });
      });
      for (const [bytes, text] of [[2e6, "2 MB"], [1e7, "10 MB"], [1e8, "100 MB"]]) {
        const y = plot.valToPos(bytes * MIB, "y", true);
        if (bytes <= size && y > top && y < top + height) marks.push({ x0: left, y0: y, x1: left + width, y1: y, text, end: false, x: left + width * 0.4, y: y - 4 * ratio });
      }
      return marks;
    };
    // What the server waited for, as stretches of the time: [begin, end, place in timeShares].
    const sharesOf = ({ runs, bright }) => {
      const data = runs.find(({ number }) => number === bright)?.data;
      if (!data) return [];
      const times = data.column("share_time"), kinds = data.column("share");
      return Array.from(kinds.subarray(1), (_kind, i) => [times[i], times[i + 1], kinds[i]]);
    };
    // As a band at the bottom, in the pixels of the canvas.
    const bandOf = (plot, column) => {
      const { left, top, width, height } = plot.bbox;
      const high = BAND * (devicePixelRatio || 1), bars = [];
      for (const [begin, end, kind] of sharesOf(column)) {
        const x0 = Math.max(plot.valToPos(begin, "x", true), left), x1 = Math.min(plot.valToPos(end, "x", true), left + width);
        if (x1 > x0) bars.push({ x: x0, y: top + height - high, width: x1 - x0, height: high, colour: timeShares[kind][1] });
      }
      return bars;
    };
    const drawBand = (plot, column) => {
      for (const { x, y, width, height, colour } of bandOf(plot, column)) { plot.ctx.fillStyle = colour; plot.ctx.fillRect(x, y, width, height); }
    };
    // The shares of the transfer in words, the largest first.
    const tellShares = ({ column, shares }) => {
      const { runs, bright } = column;
      const spent = runs.find(({ number }) => number === bright)?.data?.column("share_seconds") || [];
      const total = spent.reduce((sum, value) => sum + value, 0);
      const known = [...spent.entries()].filter(([, value]) => value >= 0.005 * total).sort((one, other) => other[1] - one[1]);
      shares.replaceChildren(...known.map(([kind, value]) => make("span", {}, square(timeShares[kind][1]), ` ${timeShares[kind][0]} ${Math.round((100 * value) / total)} %`)));
      if (total) shares.prepend(sharesOf(column).length ? "The band shows what the transfer waited for:" : "The transfer waited for:");
      shares.hidden = !total;
    };
    // Moments of the run in colour: ticks at the bottom, and states of its congestion control.
    const drawMoments = (plot, panel, { runs, bright }) => {
      const data = runs.find(({ number }) => number === bright)?.data;
      if (!data) return;
      const { ctx, bbox: { left, top, width, height } } = plot;
      const ratio = devicePixelRatio || 1;
      const inView = (times, act) => {
        const end = scatter.lower(times, plot.scales.x.max);
        for (let i = scatter.lower(times, plot.scales.x.min); i < end; i++) act(plot.valToPos(times[i], "x", true), i);
      };
      ctx.save();
      ctx.strokeStyle = ink.lost;
      ctx.lineWidth = ratio;
      ctx.beginPath();
      if (panel.ticks) inView(data.column(panel.ticks), (x) => { ctx.moveTo(x, top + height); ctx.lineTo(x, top + height - 9 * ratio); });
      ctx.stroke();
      const times = data.column("state_time"), texts = data.column("state_text");
      if (panel.states && times.length) {
        ctx.font = `${11 * ratio}px system-ui, sans-serif`;
        ctx.textAlign = "left";
        ctx.textBaseline = "alphabetic";
        ctx.fillStyle = ink.dim;
        ctx.strokeStyle = ink.dim;
        ctx.setLineDash([2 * ratio, 4 * ratio]);
        let free = -Infinity;
        inView(times, (x, i) => {
          ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, top + height); ctx.stroke();
          const word = data.texts[texts[i]].replaceAll("_", " ");
          if (x < free || x + ctx.measureText(word).width > left + width) return;
          ctx.fillText(word, x + 3 * ratio, top + 12 * ratio);
          free = x + ctx.measureText(word).width + 10 * ratio;
        });
      }
      ctx.restore();
    };
    const drawMarks = (plot, column) => {
      const { ctx } = plot;
      const ratio = devicePixelRatio || 1;
      ctx.save();
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      ctx.textBaseline = "alphabetic";
      ctx.fillStyle = ink.dim;
      ctx.strokeStyle = ink.dim;
      ctx.lineWidth = ratio;
      ctx.setLineDash([4 * ratio, 4 * ratio]);
      for (const { x0, y0, x1, y1, text, end, x, y } of marksOf(plot, column)) {
        ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke();
        ctx.textAlign = end ? "right" : "left";
        ctx.fillText(text, x, y);
      }
      ctx.restore();
    };

    // ---- panels ----
    const panels = [];
    let onPaper = false;
    let ruler = null;
    const setView = (from, to) => {
      const [least, most] = whole();
      const width = Math.min(Math.max(to - from, 1e-4), most - least);
      const begin = Math.min(Math.max(from, least), most - width);
      view = begin <= least && begin + width >= most ? null : [begin, begin + width];
      drawAll();
      save();
    };
    const visible = () => view || whole();
    const drawPanel = (each) => {
      const { plot, panel } = each;
      if (panel.shares) tellShares(each);
      const [from, to] = visible();
      const [low, high] = heights(panel, from, to);
      plot.batch(() => { plot.setScale("x", { min: from, max: to }); plot.setScale("y", { min: low, max: high }); });
    };
    const drawUnseen = (each) => { if (!each.seen) { each.seen = true; drawPanel(each); } };
    const drawAll = () => { for (const each of panels) if (each.seen) drawPanel(each); };
    // Panels without a point, or a line, in any repetition take no room; those of cells side by side come and go together.
    const hideEmpty = () => { for (const { box, panel } of panels) box.hidden = isEmpty(panel); };

    const nearest = ({ plot, panel, column }) => {
      const { left, top } = plot.cursor;
      if (left == null || left < 0) return null;
      const time = plot.posToVal(left, "x");
      const reach = Math.abs(plot.posToVal(left + 12, "x") - time);
      let best = null, distance = Infinity;
      for (const layer of curvesOf(panel, column)) {
        const end = scatter.lower(layer.x, time + reach);
        for (let i = scatter.lower(layer.x, time - reach); i < end; i++) {
          if (layer.flags && layer.flags[i] !== layer.value) continue;
          const away = Math.hypot(plot.valToPos(layer.x[i], "x") - left, plot.valToPos(layer.y[i], "y") - top) + (layer.run === column.bright ? 0 : 3);
          if (away < distance) { distance = away; best = { layer, x: layer.x[i], y: layer.y[i], flagged: layer.flags && layer.value === 1 }; }
        }
      }
      return best;
    };
    const number = (value) => (Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(4));
    const tell = (each) => {
      const { plot, panel, told, dot } = each;
      const { left, top } = plot.cursor;
      const parts = [];
      const found = nearest(each);
      dot.hidden = !found;
      if (found) { dot.style.left = `${plot.valToPos(found.x, "x")}px`; dot.style.top = `${plot.valToPos(found.y, "y")}px`; }
      if (found) parts.push(`${found.x.toFixed(4)} s, ${number(found.y)} ${panel.unit}, repetition ${found.layer.run}${found.layer.name ? `, ${found.layer.name.replaceAll("_", " ")}` : ""}${found.flagged ? `, ${panel.key_[1][1]}` : ""}`);
      const moment = panel.shares && left >= 0 ? plot.posToVal(left, "x") : NaN;
      const share = panel.shares && sharesOf(each.column).find(([begin, end]) => begin <= moment && moment < end);
      if (share) parts.push(`waits for: ${timeShares[share[2]][0]}, ${number(share[0])} to ${number(share[1])} s`);
      if (ruler?.each === each && left >= 0) {
        const dx = plot.posToVal(left, "x") - ruler.x, dy = plot.posToVal(top, "y") - ruler.y;
        const slope = panel.slope && dx ? `, ${number((dy / dx) * panel.perUnit)} ${panel.slope}` : "";
        parts.push(`ruler: ${number(dx)} s, ${number(dy)} ${panel.unit}${slope}`);
      }
      told.textContent = parts.join(" · ");
    };
    const drawRuler = (each) => {
      if (ruler?.each !== each) return;
      const { plot } = each;
      const { ctx } = plot;
      const x = plot.valToPos(ruler.x, "x", true), y = plot.valToPos(ruler.y, "y", true);
      ctx.save();
      ctx.strokeStyle = ink.text;
      ctx.beginPath(); ctx.moveTo(x - 8, y); ctx.lineTo(x + 8, y); ctx.moveTo(x, y - 8); ctx.lineTo(x, y + 8); ctx.stroke();
      ctx.restore();
    };

    const keys = (each) => (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const [from, to] = visible();
      const width = to - from;
      const act = {
        ArrowLeft: () => setView(from - width / 8, to - width / 8), ArrowRight: () => setView(from + width / 8, to + width / 8),
        "+": () => setView(from + width / 4, to - width / 4), "=": () => setView(from + width / 4, to - width / 4), "-": () => setView(from - width / 2, to + width / 2),
        0: () => { view = null; drawAll(); save(); },
        r: () => {
          const { plot } = each;
          const { left, top } = plot.cursor.left >= 0 ? plot.cursor : { left: plot.over.clientWidth / 2, top: plot.over.clientHeight / 2 };
          ruler = ruler?.each === each ? null : { each, x: plot.posToVal(left, "x"), y: plot.posToVal(top, "y") };
          for (const other of panels) if (other.seen) other.plot.redraw(false);
          tell(each);
        },
      }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (act) { act(); event.preventDefault(); }
    };
    const pointers = (each) => {
      const { over } = each.plot;
      over.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.shiftKey && document.activeElement !== each.holder) return;
        event.preventDefault();
        const [from, to] = visible();
        const at = each.plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
        const factor = Math.exp(Math.sign(event.deltaY) * 0.25);
        setView(at - (at - from) * factor, at + (to - at) * factor);
      }, { passive: false });
      const down = new Map();
      over.addEventListener("pointerdown", (event) => { if (event.pointerType === "touch") down.set(event.pointerId, event.clientX); });
      over.addEventListener("pointermove", (event) => {
        if (!down.has(event.pointerId)) return;
        const before = [...down.values()];
        down.set(event.pointerId, event.clientX);
        const after = [...down.values()];
        const [from, to] = visible();
        const box = over.getBoundingClientRect();
        const per = (to - from) / box.width;
        if (after.length === 2 && Math.abs(after[0] - after[1]) > 8) {
          const factor = Math.abs(before[0] - before[1]) / Math.abs(after[0] - after[1]);
          const at = from + ((after[0] + after[1]) / 2 - box.left) * per;
          setView(at - (at - from) * factor, at + (to - at) * factor);
        } else if (after.length === 1) { const move = (before[0] - after[0]) * per; setView(from + move, to + move); }
      });
      for (const end of ["pointerup", "pointercancel", "pointerleave"]) over.addEventListener(end, (event) => down.delete(event.pointerId));
    };

    const asCsv = ({ panel, column }) => {
      const rows = [`repetition,what,seconds,${panel.unit || "number"},special`];
      const [from, to] = visible();
      for (const { x, y, run, name, flags, value } of curvesOf(panel, column)) {
        const end = scatter.lower(x, to);
        for (let i = scatter.lower(x, from); i < end; i++) if (!flags || flags[i] === value) rows.push(`${run},${name || panel.key},${x[i].toFixed(5)},${y[i]},${value || 0}`);
      }
      return new Blob([rows.join("\n"), "\n"], { type: "text/csv" });
    };

    // What a picture of a panel is made of: see picture.js.
    const drawing = ({ plot, panel, column }, title) => ({
      plot, title: `${column.title}: ${title}`, ink,
      key: panel.key_.filter(([colour, , needed]) => (colour !== "grey" || loaded(column).length > 1) && (!needed || has(needed))).map(([colour, text]) => [ink[colour], text]),
      layers: panel.dots ? layersOf(panel, column).map((layer) => ({ ...layer, colour: layer.run === column.bright ? ink[layer.ink] : ink.grey })) : [],
      lines: panel.lines ? linesOf(panel, column) : [],
      marks: panel.marks ? marksOf(plot, column) : [],
      band: panel.shares ? bandOf(plot, column) : [],
    });

    const has = (name) => columns.some((column) => loaded(column).some(({ data }) => data.column(name).length));
    const build = (panel, column) => {
      const { runs } = column;
      const place = (panels.length && column.rest) || column.place;
      const of = columns.length > 1 ? ` of ${column.title}` : "";
      const holder = make("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `${panel.title}${of}: arrows move, plus and minus zoom, 0 shows all, R measures` });
      const told = make("p", { class: "dim" });
      const key = make("span", { class: "key" });
      for (const [colour, text, needed] of panel.key_) {
        if ((colour === "grey" && runs.length < 2) || (needed && !has(needed))) continue;
        key.append(make("span", {}, square(`var(--${colour})`), ` ${text}`));
      }
      const title = panel.title + (panel.unit ? `, ${panel.unit}` : "");
      const dot = make("span", { class: "nearest", hidden: "" });
      const shares = make("div", { class: "key shares", hidden: "" });
      const each = { panel, column, holder, told, dot, shares, seen: false };
      const forms = make("span", { class: "forms" }, "Save as ");
      for (const [form, content] of [["SVG", () => picture.svg(drawing(each, title))], ["PNG", () => picture.png(drawing(each, title))], ["CSV", () => asCsv(each)]]) {
        const button = make("button", { type: "button", "aria-label": `${panel.title}${of} as ${form}` }, form);
        button.addEventListener("click", async () => picture.give(`${column.name}-${panel.key}.${form.toLowerCase()}`, await content()));
        forms.append(button);
      }
      each.box = make("div", { class: "panel", "data-panel": panel.key }, make("div", { class: "caption" }, make("h3", {}, title), key, forms), holder, shares, told);
      place.append(each.box);
      const axis = (more) => ({ stroke: () => ink.dim, grid: { stroke: () => ink.line, width: 1 }, ticks: { stroke: () => ink.line, width: 1 }, font: "12px system-ui, sans-serif", ...more });
      each.size = () => ({ width: onPaper ? PAPER / columns.length : Math.max(holder.clientWidth, 200), height: panel.dots ? 340 : 220 });
      each.plot = new uPlot({
        ...each.size(),
        pxAlign: 0,
        scales: { x: { time: false, auto: false, range: (_plot, low, high) => [low ?? 0, high ?? 1] }, y: { auto: false, range: (_plot, low, high) => [low ?? 0, high ?? 1] } },
        axes: [axis({ values: (_plot, ticks) => ticks.map((tick) => `${Number(tick.toPrecision(10))} s`) }), axis({ size: 64, values: (_plot, ticks) => ticks.map((tick) => String(Number(tick.toPrecision(6)))) })],
        series: [{}, { show: false, auto: false }],
        legend: { show: false },
        cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
        hooks: {
          draw: [(plot) => {
            if (!each.seen) return;
            if (panel.dots) scatter.points(plot, layersOf(panel, column)); else drawLines(plot, panel, column);
            if (panel.shares) drawBand(plot, column);
            if (panel.marks) drawMarks(plot, column);
            drawMoments(plot, panel, column);
            drawRuler(each);
          }],
          setCursor: [() => tell(each)],
          setSelect: [(plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            setView(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          }],
        },
      }, [[0, 1], [0, 1]], holder);
      each.plot.over.append(dot);
      each.plot.over.addEventListener("dblclick", () => { view = null; drawAll(); save(); });
      holder.addEventListener("keydown", keys(each));
      pointers(each);
      new ResizeObserver(() => { if (holder.clientWidth) each.plot.setSize(each.size()); }).observe(holder);
      panels.push(each);
      return each;
    };

    // ---- which repetitions ----
    const controls = (column) => {
      const { place, runs, shown, after } = column;
      if (runs.length < 2) return;
      const chooser = make("div", { class: "bar", role: "group", "aria-label": columns.length > 1 ? `Repetitions of ${column.title}` : "Repetitions" });
      const choose = () => {
        for (const button of chooser.querySelectorAll("button[value]")) button.setAttribute("aria-pressed", String(shown.has(Number(button.value))));
        picker.value = String(column.bright);
        drawAll();
        save();
      };
      chooser.append("Repetitions");
      for (const run of runs) chooser.append(make("button", { type: "button", value: run.number, "aria-pressed": String(shown.has(run.number)), "aria-label": `Repetition ${run.number}` }, String(run.number)));
      chooser.addEventListener("click", ({ target }) => {
        const which = Number(target.value);
        if (target.tagName !== "BUTTON" || !which) return;
        if (!shown.delete(which)) shown.add(which);
        if (!shown.size) shown.add(which);
        if (!shown.has(column.bright)) column.bright = [...shown][0];
        choose();
      });
      const picker = make("select", { id: `bright${after}` }, ...runs.map((run) => make("option", { value: run.number }, `${run.number}${run.median ? ", the median" : ""}${run.outcome === "succeeded" ? "" : `, ${run.outcome}`}`)));
      picker.value = String(column.bright);
      const pick = (which) => { column.bright = which; shown.add(which); choose(); };
      picker.addEventListener("change", () => { pick(Number(picker.value)); if (!after) dispatchEvent(new CustomEvent("repetition", { detail: column.bright })); });
      if (!after) addEventListener("repetition", ({ detail }) => { if (detail !== column.bright && runs.some((run) => run.number === detail)) pick(detail); });
      chooser.append(make("label", { for: `bright${after}` }, "in colour"), picker);
      place.before(chooser);
    };

    const first = columns.flatMap(({ runs, bright }) => runs.filter((run) => run.number === bright));
    try {
      await Promise.all(first.map(load));
    } catch (failed) {
      note.textContent = `The packets could not be loaded: ${failed.message}.`;
      for (const { rest } of columns) rest?.closest("section").remove();
      return;
    }
    for (const column of columns) controls(column);
    for (const panel of PANELS) if (!panel.needs || has(panel.needs)) for (const column of columns) build(panel, column);
    hideEmpty();
    const top = panels.find(({ box }) => !box.hidden);
    if (top) drawUnseen(top);
    performance.mark("packets-drawn");
    note.textContent = "Drag to zoom, double-click to see all; Shift and wheel, pinch, or the keys + - 0 and arrows; R begins to measure. The view is in the address.";
    const seer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) drawUnseen(panels.find(({ holder }) => holder === target));
      }
    }, { rootMargin: "300px" });
    for (const { holder } of panels) seer.observe(holder);
    addEventListener("themechange", () => { readInk(); for (const each of panels) if (each.seen) each.plot.redraw(); });
    addEventListener("paper", ({ detail }) => {
      onPaper = detail;
      for (const each of panels) { each.plot.setSize(each.size()); drawUnseen(each); }
    });
    const runs = columns.flatMap((column) => column.runs);
    for (const run of runs) {
      if (first.includes(run)) continue;
      try { await load(run); } catch { continue; }
      hideEmpty();
      drawAll();
    }
    if (panels.every(({ box }) => box.hidden)) {
      note.textContent = "These runs have no packets with data that could be plotted.";
      for (const { place, rest } of columns) {
        place.parentElement.querySelector("[aria-label^=Repetitions]")?.remove();
        rest?.closest("section")?.remove();
      }
      document.querySelector(".jump [href='#more']")?.remove();
    }
    const thinned = Math.max(...runs.map((run) => (run.data ? run.data.every : 1)));
    if (thinned > 1) note.textContent += ` Repetitions other than the median show up to every ${thinned}th packet only.`;
    for (const { place } of columns) place.dataset.ready = "yes";
  };
  window.packetPlots = { show };

  const place = document.getElementById("plots");
  if (!place || typeof uPlot === "undefined") return;
  const { title, name, size } = place.dataset;
  const runs = JSON.parse(document.getElementById("repetitions").textContent);
  show([{ place, rest: document.getElementById("more-plots"), runs, folder: "", title, name, size: Number(size) }], document.getElementById("plots-note"));
})();
