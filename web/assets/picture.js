// Pictures of a panel to take away: as SVG whose axes, words and packets are vectors, and as PNG; with title and key.
"use strict";
(() => {
  const HEAD = 46, FONT = "12px system-ui, sans-serif";
  const FINEST = 2; // Packets closer than a half of a pixel are one.

  const size = (plot) => {
    const ratio = plot.ctx.canvas.width / plot.width;
    return { ratio, width: plot.width, height: plot.height + HEAD };
  };

  const give = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // drawing: {plot, title, ink, key: [[colour, words]], layers and lines as plot.js draws them, marks and band in pixels of the canvas}
  const png = ({ plot, title, ink, key }) => {
    const { ratio, width, height } = size(plot);
    const canvas = document.createElement("canvas");
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.fillStyle = ink.ground;
    context.fillRect(0, 0, width, height);
    context.fillStyle = ink.text;
    context.font = `600 ${FONT.replace("12", "14")}`;
    context.fillText(title, 12, 20);
    context.font = FONT;
    let at = 12;
    for (const [colour, words] of key) {
      context.fillStyle = colour;
      context.fillRect(at, 29, 10, 10);
      context.fillStyle = ink.text;
      context.fillText(words, at + 15, 38);
      at += 31 + context.measureText(words).width;
    }
    context.drawImage(plot.ctx.canvas, 0, HEAD, width, plot.height);
    return new Promise((done) => canvas.toBlob(done));
  };

  const element = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const dots = ({ x, y, flags, value }, plot, box) => {
    const { min: x0, max: x1 } = plot.scales.x, { min: y0, max: y1 } = plot.scales.y;
    const seen = new Set(), parts = [];
    const rows = box.height * FINEST + 1;
    const end = scatter.lower(x, x1);
    for (let i = scatter.lower(x, x0); i < end; i++) {
      if ((flags && flags[i] !== value) || y[i] < y0 || y[i] > y1) continue;
      const column = Math.round(((x[i] - x0) / (x1 - x0)) * box.width * FINEST), row = Math.round(((y1 - y[i]) / (y1 - y0)) * box.height * FINEST);
      const spot = column * rows + row;
      if (seen.has(spot)) continue;
      seen.add(spot);
      parts.push(`M${column / FINEST} ${row / FINEST}h0`);
    }
    return parts.join("");
  };

  const curve = ({ x, y }, plot, box) => {
    const { min: x0, max: x1 } = plot.scales.x, { min: y0, max: y1 } = plot.scales.y;
    const parts = [];
    const end = Math.min(scatter.lower(x, x1) + 1, x.length);
    for (let i = Math.max(scatter.lower(x, x0) - 1, 0); i < end; i++) {
      parts.push(`${(((x[i] - x0) / (x1 - x0)) * box.width).toFixed(1)},${(((y1 - y[i]) / (y1 - y0)) * box.height).toFixed(1)}`);
    }
    return parts.join(" ");
  };

  const axes = (svg, plot, box, ink) => {
    for (const [number, axis] of plot.axes.entries()) {
      const upright = number === 0;
      (axis._splits || []).forEach((value, at) => {
        const text = (axis._values || [])[at];
        if (text === undefined || text === null) return;
        const place = plot.valToPos(value, axis.scale) + (upright ? box.left : box.top);
        const [low, high] = upright ? [box.left, box.left + box.width] : [box.top, box.top + box.height];
        if (place < low - 1 || place > high + 1) return;
        svg.append(
          element("line", upright ? { x1: place, x2: place, y1: box.top, y2: box.top + box.height + 5, stroke: ink.line } : { x1: box.left - 5, x2: box.left + box.width, y1: place, y2: place, stroke: ink.line }),
          element("text", upright ? { x: place, y: box.top + box.height + 20, "text-anchor": "middle", fill: ink.dim } : { x: box.left - 9, y: place + 4, "text-anchor": "end", fill: ink.dim }, text),
        );
      });
    }
  };

  const svg = ({ plot, title, ink, key, layers, lines, marks, band }) => {
    const { ratio, width, height } = size(plot);
    const box = { left: plot.bbox.left / ratio, top: plot.bbox.top / ratio + HEAD, width: plot.bbox.width / ratio, height: plot.bbox.height / ratio };
    const made = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "system-ui, sans-serif", "font-size": 12 });
    made.append(element("title", {}, title), element("rect", { width, height, fill: ink.ground }), element("text", { x: 12, y: 20, "font-size": 14, "font-weight": 600, fill: ink.text }, title));
    let at = 12;
    for (const [colour, words] of key) {
      made.append(element("rect", { x: at, y: 29, width: 10, height: 10, fill: colour }), element("text", { x: at + 15, y: 38, fill: ink.text }, words));
      at += 31 + words.length * 6.6;
    }
    axes(made, plot, box, ink);
    const inside = element("svg", { x: box.left, y: box.top, width: box.width, height: box.height });
    for (const layer of layers) inside.append(element("path", { d: dots(layer, plot, box), stroke: layer.colour, "stroke-width": layer.size, "stroke-linecap": "square", fill: "none" }));
    for (const line of lines) inside.append(element("polyline", { points: curve(line, plot, box), stroke: line.colour, "stroke-width": line.width, "stroke-linejoin": "round", fill: "none" }));
    made.append(inside);
    for (const { x, y, width, height, colour } of band) made.append(element("rect", { x: x / ratio, y: y / ratio + HEAD, width: width / ratio, height: height / ratio, fill: colour }));
    for (const { x0, y0, x1, y1, text, end, x, y } of marks) {
      made.append(
        element("line", { x1: x0 / ratio, y1: y0 / ratio + HEAD, x2: x1 / ratio, y2: y1 / ratio + HEAD, stroke: ink.dim, "stroke-dasharray": "4 4" }),
        element("text", { x: x / ratio, y: y / ratio + HEAD, "text-anchor": end ? "end" : "start", fill: ink.dim, "font-size": 11 }, text),
      );
    }
    return new Blob([new XMLSerializer().serializeToString(made), "\n"], { type: "image/svg+xml" });
  };

  window.picture = { svg, png, give };
})();
