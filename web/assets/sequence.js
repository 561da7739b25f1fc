// The sequence diagram of a run: each datagram as a line from its sender to its receiver, time from top to bottom.
// The file is made by quicsat/site/sequence.py. site.js loads this script when the page is idle.
"use strict";
(() => {
  const place = document.getElementById("sequence-view");
  if (!place) return;
  const note = document.getElementById("sequence-note");
  const make = (name, text = "", attributes = {}) => {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const FORMS = ["Initial", "0-RTT", "Handshake", "Retry", "1-RTT", "Version Negotiation", "unknown packet"];
  const FRAMES = new Map([
    [0x01, "PING"], [0x04, "RESET_STREAM"], [0x05, "STOP_SENDING"], [0x07, "NEW_TOKEN"], [0x10, "MAX_DATA"], [0x11, "MAX_STREAM_DATA"],
    [0x12, "MAX_STREAMS (bidirectional)"], [0x13, "MAX_STREAMS (unidirectional)"], [0x14, "DATA_BLOCKED"], [0x15, "STREAM_DATA_BLOCKED"], [0x16, "STREAMS_BLOCKED (bidirectional)"], [0x17, "STREAMS_BLOCKED (unidirectional)"],
    [0x18, "NEW_CONNECTION_ID"], [0x19, "RETIRE_CONNECTION_ID"], [0x1a, "PATH_CHALLENGE"], [0x1b, "PATH_RESPONSE"], [0x1c, "CONNECTION_CLOSE"], [0x1d, "CONNECTION_CLOSE (application)"],
    [0x1e, "HANDSHAKE_DONE"], [0x1f, "IMMEDIATE_ACK"], [0x24, "RESET_STREAM_AT"], [0x30, "DATAGRAM"], [0x31, "DATAGRAM"], [0xaf, "ACK_FREQUENCY"],
    [0x02f5, "TIME_STAMP"], [0xebd9, "BDP_FRAME"],
  ]);
  const PACKET = 0x10000, HIGH = 2 ** 30;
  const TOP = 26, LEFT = 66, RIGHT = 22, BAND = 12, HEIGHT = 640, PAPER = 700, FEW = 45, SPARSE = 150;
  const words = new URLSearchParams(location.search);
  const named = words.has("packet");
  const wanted = /^([cs])([1-9]\d{0,6})$/.exec(words.get("packet") || "");
  const runs = JSON.parse(document.getElementById("repetitions").textContent).filter((run) => run.sequence);
  const middle = runs.find((run) => run.median) || runs[0];
  const begun = runs.find((run) => run.number === Number(words.get("bright"))) || middle;

  const lower = (values, value) => {
    let low = 0, high = values.length;
    while (low < high) { const middle = (low + high) >> 1; if (values[middle] < value) low = middle + 1; else high = middle; }
    return low;
  };
  const whole = (value) => value.toLocaleString("en");
  const range = (offset, length) => (length ? `${whole(offset)} to ${whole(offset + length - 1)}` : `at ${whole(offset)}`);

  // Both sides, in the order of sending; frames in the order of their datagrams. The file has each side for itself.
  const joined = (data) => {
    const sides = ["0", "1"].map((side) => {
      const [time, arrival, fate, size, frames, kind, a, aHigh, b, bHigh, c] = ["time", "arrival", "fate", "size", "frames", "kind", "a", "a_high", "b", "b_high", "c"].map((name) => data.column(`${name}_${side}`));
      const counts = new Map();
      for (const each of kind) counts.set(each, (counts.get(each) || 0) + 1);
      const next = new Map(); // where the numbers of the next frame of a kind are
      let begin = 0;
      for (const each of [...counts.keys()].sort((one, other) => one - other)) { next.set(each, begin); begin += counts.get(each); }
      return { time, arrival, fate, size, frames, kind, a, aHigh, b, bHigh, c, next, datagram: 0, arrived: 0, frame: 0 };
    });
    const [client, server] = sides;
    const count = client.size.length + server.size.length;
    const all = client.kind.length + server.kind.length;
    const [way, time, delay, size] = Array.from({ length: 4 }, () => new Float64Array(count));
    const [row, kind, first, second, third] = Array.from({ length: 5 }, () => new Float64Array(all));
    for (let i = 0, at = 0; i < count; i++) {
      way[i] = client.datagram === client.size.length || server.time[server.datagram] <= client.time[client.datagram] ? 1 : 0;
      const side = sides[way[i]], j = side.datagram++;
      time[i] = side.time[j];
      delay[i] = side.fate[j] || Math.max(side.arrival[side.arrived++] - time[i], 0);
      size[i] = side.size[j];
      for (let left = side.frames[j]; left > 0; left--, at++) {
        const what = side.kind[side.frame++], from = side.next.get(what);
        side.next.set(what, from + 1);
        row[at] = i;
        kind[at] = what;
        first[at] = side.a[from] + HIGH * side.aHigh[from];
        second[at] = side.b[from] + HIGH * side.bHigh[from];
        third[at] = side.c[from];
      }
    }
    return { way, time, delay, size, row, kind, first, second, third };
  };

  // one: the repetition; plots: what the plots show of it; until: a signal after which another one is shown in its place.
  const show = (data, plots, one, until) => {
    const shareTimes = plots.column("share_time"), shares = plots.column("share");
    const { way, time, delay, size, row, kind, first, second, third } = joined(data);
    const count = time.length;
    const rank = new Int32Array(count); // which of its sender's datagrams, from 1
    const ofSender = [[], []];
    for (let i = 0; i < count; i++) { ofSender[way[i]].push(i); rank[i] = ofSender[way[i]].length; }
    const longest = delay.reduce((most, value) => Math.max(most, value), 0.01);
    const end = count ? time[count - 1] + longest : 1;
    const least = Math.min(0, count ? time[0] : 0);
    const name = (i) => `${way[i] ? "s" : "c"}${rank[i]}`;

    // ---- words ----
    const frame = (at) => {
      const a = first[at], b = second[at], c = third[at], what = kind[at];
      if (what >= PACKET) return what === PACKET + 16 ? `packet ${whole(a)}` : what === PACKET + 3 || what === PACKET + 5 ? FORMS[what - PACKET] : `${FORMS[what - PACKET] || "packet"} ${whole(a)}`;
      if (what === 0x02) return `ACK ${a === b ? whole(a) : `${whole(b)} to ${whole(a)}`}${c > 1 ? ` in ${c} ranges` : ""}`;
      if (what === 0x06) return `CRYPTO ${range(b, c)}`;
      if (what === 0x08 || what === 0x09) return `STREAM ${a}: ${range(b, c)}${what === 0x09 ? ", FIN" : ""}`;
      const title = FRAMES.get(what) || `frame of type 0x${what.toString(16)}`;
      if ([0x01, 0x07, 0x1a, 0x1b, 0x1e, 0x1f].includes(what)) return title;
      if (what === 0x11 || what === 0x15) return `${title} of stream ${a}: ${whole(b)}`;
      if ([0x04, 0x05, 0x24].includes(what)) return `${title} of stream ${a}, code ${whole(b)}`;
      if (what === 0x1c || what === 0x1d) return `${title}: code ${whole(a)}${c ? `, “${data.texts[c]}”` : ""}`;
      return `${title} ${whole(a)}`;
    };
    const frames = (i) => {
      const lines = [];
      for (let at = lower(row, i); at < row.length && row[at] === i; at++) {
        if (kind[at] >= PACKET || !lines.length) lines.push(frame(at));
        else lines[lines.length - 1] += `${lines[lines.length - 1].includes(":") ? ", " : ": "}${frame(at).replace(/^STREAM (\d+):/, "STREAM $1,")}`;
      }
      return lines;
    };
    const fate = (i) => (delay[i] >= 0 ? `arrives after ${(1000 * delay[i]).toFixed(2)} ms` : delay[i] > -1.5e-6 ? "lost" : "not known whether it arrives");
    const about = (i) => [`${way[i] ? "Server" : "Client"}, datagram ${whole(rank[i])}, at ${time[i].toFixed(6)} s, ${whole(size[i])} bytes, ${fate(i)}`, ...frames(i)];

    // ---- what is seen ----
    const asked = one === begun;
    const known = asked && wanted ? ofSender[wanted[1] === "s" ? 1 : 0][Number(wanted[2]) - 1] : undefined;
    let chosen = known ?? -1;
    let hovered = -1;
    const start = count ? time[Math.min(count - 1, 30)] + longest : 1;
    let view = [least, Math.max(start, least + 0.01)];
    const set = (from, to) => {
      const width = Math.min(Math.max(to - from, 1e-4), end - least);
      const begin = Math.min(Math.max(from, least), end - width);
      view = [begin, begin + width];
      draw();
    };
    const centre = (i) => { const width = view[1] - view[0]; set(time[i] - width / 3, time[i] + (2 * width) / 3); };

    // ---- elements ----
    const holder = make("div", "", { class: "sequence", tabindex: "0", role: "group", "aria-label": "Sequence diagram: up and down move, plus and minus zoom, left and right choose a packet, L the next lost one, 0 shows all" });
    const canvas = make("canvas");
    const tip = make("div", "", { class: "tip" });
    tip.hidden = true;
    const told = make("div", "", { class: "told", role: "status" });
    const bar = make("div", "", { class: "bar", role: "group", "aria-label": "Sequence diagram" });
    holder.append(canvas, tip);

    // ---- drawing: only what is in view, each line of pixels once ----
    const ink = () => { const style = getComputedStyle(document.documentElement); return (word) => style.getPropertyValue(`--${word}`).trim(); };
    let frameAsked = 0;
    const draw = () => { cancelAnimationFrame(frameAsked); frameAsked = requestAnimationFrame(paint); };
    let onPaper = false;
    const widthNow = () => (onPaper ? PAPER : holder.clientWidth);
    const ends = () => [LEFT, widthNow() - (shares.length ? RIGHT : 10)];
    const y = (moment) => TOP + ((moment - view[0]) / (view[1] - view[0])) * (HEIGHT - TOP);
    const line = (i) => {
      const [left, right] = ends();
      const [x0, x1] = way[i] ? [right, left] : [left, right];
      const y0 = y(time[i]);
      if (delay[i] >= 0) return [x0, y0, x1, y(time[i] + delay[i])];
      return [x0, y0, x0 + (x1 - x0) * 0.4, y(time[i] + longest * 0.4)];
    };
    // Many lines: straight into pixels, since a browser takes a millisecond for each few that it strokes.
    const dense = (context, lines, inks, ratio, width) => {
      const wide = Math.round(width * ratio), high = Math.round((HEIGHT - TOP) * ratio), top = Math.round(TOP * ratio);
      const image = context.getImageData(0, top, wide, high);
      const pixels = new Uint32Array(image.data.buffer);
      for (const [which, many] of lines.entries()) {
        const paint = pixelOf(inks[which]);
        for (const [x0, y0, x1, y1] of many) {
          const [left, right] = x0 < x1 ? [x0, x1] : [x1, x0];
          const slope = (y1 - y0) / (x1 - x0);
          const last = Math.min(Math.round(right * ratio), wide - 1);
          let at = (y0 + slope * (left - x0)) * ratio - top;
          for (let x = Math.round(left * ratio); x <= last; x++, at += slope) if (at >= 0 && at < high) pixels[(at | 0) * wide + x] = paint;
        }
      }
      context.putImageData(image, 0, top);
    };
    // "#0063b2" as a pixel, in the byte order of this machine.
    const little = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
    const pixelOf = (text) => {
      const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
      return (little ? (255 << 24) | (blue << 16) | (green << 8) | red : (red << 24) | (green << 16) | (blue << 8) | 255) >>> 0;
    };
    const inView = () => [lower(time, view[0] - longest), lower(time, view[1])];
    const paint = () => {
      const ratio = devicePixelRatio || 1, width = widthNow(), colour = ink();
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(HEIGHT * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(HEIGHT * ratio); }
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, HEIGHT);
      context.font = "12px system-ui, sans-serif";
      const [left, right] = ends();
      // time
      const span = view[1] - view[0];
      const rough = span / 8, power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough);
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      context.strokeStyle = colour("line");
      context.fillStyle = colour("dim");
      context.textAlign = "right";
      context.beginPath();
      for (let tick = Math.ceil(view[0] / step) * step; tick <= view[1]; tick += step) {
        const at = Math.round(y(tick)) + 0.5;
        context.moveTo(left, at); context.lineTo(right, at);
        context.fillText(`${tick.toFixed(digits)} s`, left - 6, Math.min(at + 4, HEIGHT - 2));
      }
      context.stroke();
      // datagrams
      const [from, to] = inView();
      const lines = [[], [], []]; // from the client, from the server, lost
      const last = [-1, -1, -1];
      context.save();
      context.beginPath(); context.rect(0, TOP, width, HEIGHT - TOP); context.clip();
      let drawn = 0;
      for (let i = from; i < to; i++) {
        const [x0, y0, x1, y1] = line(i);
        if (y1 < TOP && y0 < TOP) continue;
        const which = delay[i] >= 0 ? way[i] : 2;
        const key = ((y0 | 0) * 8192 + (y1 | 0)) * 2 + way[i];
        if (key === last[which]) continue;
        last[which] = key;
        drawn++;
        if (which < 2 || to - from <= 4 * SPARSE) lines[which].push([x0, y0, x1, y1]);
        if (which === 2) lines[2].push([x1 - 4, y1 - 4, x1 + 4, y1 + 4], [x1 - 4, y1 + 4, x1 + 4, y1 - 4]);
      }
      const inks = ["acks", "first", "lost"].map(colour);
      if (drawn > SPARSE) {
        dense(context, lines, inks, ratio, width);
      } else {
        context.lineWidth = 1.2;
        for (const [which, many] of lines.entries()) {
          context.strokeStyle = inks[which];
          context.beginPath();
          for (const [x0, y0, x1, y1] of many) { context.moveTo(x0, y0); context.lineTo(x1, y1); }
          context.stroke();
        }
      }
      if (chosen >= 0) { const [x0, y0, x1, y1] = line(chosen); context.lineWidth = 3; context.strokeStyle = colour("text"); context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke(); }
      // words, where there is room
      if (to - from <= FEW && width > 500) {
        const free = [-Infinity, -Infinity];
        context.fillStyle = colour("text");
        for (let i = from; i < to; i++) {
          const [x0, y0, x1, y1] = line(i);
          const slope = (y1 - y0) / (x1 - x0), at = x0 + (way[i] ? -8 : 8);
          const baseline = y0 + slope * (at - x0) - 3;
          if (baseline < free[way[i]] + 13) continue;
          free[way[i]] = baseline;
          context.textAlign = way[i] ? "right" : "left";
          context.fillText(frames(i).join("; ").slice(0, Math.floor((right - left) / 14)), at, baseline);
        }
      }
      context.restore();
      for (let i = 0; i + 1 < shares.length; i++) {
        const begin = Math.max(y(shareTimes[i]), TOP), until = Math.min(y(shareTimes[i + 1]), HEIGHT);
        if (until > begin) { context.fillStyle = timeShares[shares[i]][1]; context.fillRect(right + 4, begin, BAND, until - begin); }
      }
      context.strokeStyle = colour("text");
      context.lineWidth = 1.5;
      context.beginPath(); context.moveTo(left, TOP - 4); context.lineTo(left, HEIGHT); context.moveTo(right, TOP - 4); context.lineTo(right, HEIGHT); context.stroke();
      context.fillStyle = colour("text");
      context.font = "600 13px system-ui, sans-serif";
      context.textAlign = "left"; context.fillText("client", left, 14);
      context.textAlign = "right"; context.fillText("server", right, 14);
      holder.dataset.drawn = String(drawn);
      performance.mark("sequence-drawn");
    };

    // ---- choosing ----
    const save = () => {
      const next = new URLSearchParams(location.search);
      if (chosen >= 0) next.set("packet", name(chosen)); else next.delete("packet");
      const text = next.toString();
      history.replaceState(null, "", location.pathname + (text ? `?${text}` : "") + location.hash);
    };
    const missing = () => {
      if (!wanted) return "The address of this page does not name a packet in the form c12 or s12.";
      const side = wanted[1] === "s" ? 1 : 0;
      return `The address of this page names datagram ${whole(Number(wanted[2]))} of the ${side ? "server" : "client"}, but the diagram has only ${whole(ofSender[side].length)} of them.`;
    };
    const tell = () => {
      if (chosen < 0) { told.replaceChildren(); return; }
      const [first, ...rest] = about(chosen);
      const list = make("ul");
      list.append(...rest.map((text) => make("li", text)));
      told.replaceChildren(make("p", first), list);
    };
    const choose = (i, move = true) => {
      chosen = i;
      tell();
      save();
      if (move && i >= 0 && (time[i] < view[0] || time[i] + longest * 0.1 > view[1])) centre(i); else draw();
    };
    const nearest = (px, py) => {
      const [left, right] = ends();
      if (px < left - 4 || px > right + 4) return -1;
      const moment = view[0] + ((py - TOP) / (HEIGHT - TOP)) * (view[1] - view[0]);
      let best = -1, distance = 9;
      const stop = lower(time, moment + ((view[1] - view[0]) * 10) / HEIGHT);
      for (let i = lower(time, moment - longest - ((view[1] - view[0]) * 10) / HEIGHT); i < stop; i++) {
        const [x0, y0, x1, y1] = line(i);
        if ((px - x0) * (px - x1) > 40) continue;
        const away = Math.abs(y0 + ((y1 - y0) * (px - x0)) / (x1 - x0) - py);
        if (away < distance) { distance = away; best = i; }
      }
      return best;
    };
    // What the transfer waits for at a point of the band; empty beside it.
    const shareAt = (px, py) => {
      if (px < ends()[1] + 4 || !shares.length) return "";
      const i = lower(shareTimes, view[0] + ((py - TOP) / (HEIGHT - TOP)) * (view[1] - view[0])) - 1;
      return i >= 0 && i + 1 < shares.length ? `The transfer waits for: ${timeShares[shares[i]][0]}, from ${shareTimes[i].toFixed(3)} s to ${shareTimes[i + 1].toFixed(3)} s` : "";
    };
    const pointOf = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    let dragged = null;
    canvas.addEventListener("pointerdown", (event) => { if (event.pointerType !== "touch") dragged = { y: event.clientY, view: [...view], moved: false }; });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = pointOf(event);
      if (dragged && event.buttons) {
        const shift = ((dragged.y - event.clientY) / (HEIGHT - TOP)) * (dragged.view[1] - dragged.view[0]);
        dragged.moved ||= Math.abs(dragged.y - event.clientY) > 4;
        if (dragged.moved) { tip.hidden = true; set(dragged.view[0] + shift, dragged.view[1] + shift); return; }
      }
      const found = nearest(px, py), waits = shareAt(px, py);
      if (found === hovered && found < 0 && !waits) return;
      hovered = found;
      tip.hidden = found < 0 && !waits;
      if (tip.hidden) { hovered = -1; return; }
      tip.replaceChildren(...(waits ? [waits] : about(found)).map((text) => make("p", text)));
      tip.style.left = `${Math.max(0, Math.min(px + 14, holder.clientWidth - tip.offsetWidth - 4))}px`;
      tip.style.top = `${py + 18 + tip.offsetHeight > HEIGHT ? py - tip.offsetHeight - 8 : py + 18}px`;
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; hovered = -1; });
    canvas.addEventListener("click", (event) => {
      const moved = dragged?.moved;
      dragged = null;
      if (!moved) choose(nearest(...pointOf(event)), false);
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== holder) return;
      event.preventDefault();
      const at = view[0] + ((pointOf(event)[1] - TOP) / (HEIGHT - TOP)) * (view[1] - view[0]);
      const factor = Math.exp(Math.sign(event.deltaY || event.deltaX) * 0.25);
      set(at - (at - view[0]) * factor, at + (view[1] - at) * factor);
    }, { passive: false });
    const move = (share) => { const width = view[1] - view[0]; set(view[0] + share * width, view[1] + share * width); };
    const zoom = (factor) => { const middle = (view[0] + view[1]) / 2, half = ((view[1] - view[0]) * factor) / 2; set(middle - half, middle + half); };
    const next = (step) => choose(Math.min(Math.max(chosen < 0 ? lower(time, view[0]) : chosen + step, 0), count - 1));
    const nextLost = () => {
      for (let i = chosen + 1; i < count; i++) if (delay[i] < 0 && delay[i] > -1.5e-6) { choose(i); return; }
    };
    const ACTS = { ArrowUp: () => move(-0.15), ArrowDown: () => move(0.15), ArrowLeft: () => next(-1), ArrowRight: () => next(1),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => set(least, end), l: nextLost, Escape: () => choose(-1) };
    holder.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const act = ACTS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (act) { act(); event.preventDefault(); }
    });
    for (const [text, label, act] of [["+", "Zoom in", ACTS["+"]], ["−", "Zoom out", ACTS["-"]], ["↑", "Earlier", ACTS.ArrowUp], ["↓", "Later", ACTS.ArrowDown], ["All", "Show all", ACTS[0]],
      ["◂ Packet", "Previous packet", ACTS.ArrowLeft], ["Packet ▸", "Next packet", ACTS.ArrowRight], ["Next lost", "Next lost packet", nextLost]]) {
      const button = make("button", text, { type: "button", "aria-label": label });
      button.addEventListener("click", act);
      bar.append(button);
    }
    const key = make("span", "", { class: "key" });
    for (const [colour, text] of [["first", "from the server"], ["acks", "from the client"], ["lost", "lost"]]) key.append(make("span", text, { class: `swatch ${colour}` }));
    bar.append(key);
    place.replaceChildren(bar, holder, told);
    const observer = new ResizeObserver(draw);
    observer.observe(holder);
    until.addEventListener("abort", () => observer.disconnect());
    addEventListener("themechange", draw, { signal: until });
    addEventListener("paper", ({ detail }) => { onPaper = detail; paint(); }, { signal: until });
    if (chosen >= 0) { centre(chosen); tell(); }
    else if (named && asked) told.replaceChildren(make("p", missing(), { class: "note" }));
    draw();
    place.dataset.ready = "yes";
    const lost = delay.reduce((sum, value) => sum + (value < 0 && value > -1.5e-6), 0);
    note.textContent = `Repetition ${one.number}: ${whole(count)} datagrams, ${whole(lost)} lost. Point at a line to see its frames, click it for a link to it in the address. Drag or use the arrows to move; Shift and wheel, + and − zoom.`
      + (one.frames ? "" : " The traces were not read, so that only packet numbers and the server's stream data are known.");
  };

  let shown = null, gone = new AbortController();
  const begin = async (run) => {
    shown = run;
    try {
      const [data, plots] = await Promise.all([packetFile.load(run.sequence), packetFile.load(run.file)]);
      if (shown !== run) return;
      gone.abort();
      gone = new AbortController();
      show(data, plots, run, gone.signal);
    } catch (failed) {
      note.textContent = `The sequence diagram could not be loaded: ${failed.message}.`;
      place.hidden = true;
    }
  };
  // Which repetition: the one that is in colour in the plots, if it has a diagram.
  if (runs.length > 1) {
    const picker = make("select", "", { id: "sequence-of" });
    picker.append(...runs.map((run) => make("option", `${run.number}${run.median ? ", the median" : ""}${run.outcome === "succeeded" ? "" : `, ${run.outcome}`}`, { value: run.number })));
    picker.value = String(begun.number);
    const chooser = make("div", "", { class: "bar" });
    chooser.append(make("label", "Repetition", { for: "sequence-of" }), picker);
    place.before(chooser);
    const pick = (number) => {
      const run = runs.find((each) => each.number === number);
      if (!run || run === shown) return;
      picker.value = String(number);
      const next = new URLSearchParams(location.search);
      next.delete("packet");
      if (run === middle) next.delete("bright"); else next.set("bright", number);
      const text = next.toString();
      history.replaceState(null, "", location.pathname + (text ? `?${text}` : "") + location.hash);
      begin(run);
    };
    picker.addEventListener("change", () => { pick(Number(picker.value)); dispatchEvent(new CustomEvent("repetition", { detail: shown.number })); });
    addEventListener("repetition", ({ detail }) => pick(detail));
  }
  begin(begun).then(() => { if (named) (place.querySelector(".note") || place).scrollIntoView({ block: "center" }); });
})();
