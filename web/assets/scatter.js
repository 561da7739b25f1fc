// Draws any number of points on a uPlot chart: into a buffer of pixels, which no other way of a browser comes near.
"use strict";
(() => {
  const buffers = new WeakMap();

  // First index of a sorted array whose value is not below the wanted one.
  const lower = (values, wanted) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low;
  };

  const bufferOf = (plot, width, height) => {
    let buffer = buffers.get(plot);
    if (!buffer || buffer.width !== width || buffer.height !== height) {
      const canvas = document.createElement("canvas");
      canvas.width = width;
      canvas.height = height;
      const context = canvas.getContext("2d");
      const image = context.createImageData(width, height);
      buffer = { width, height, canvas, context, image, pixels: new Uint32Array(image.data.buffer) };
      buffers.set(plot, buffer);
    }
    buffer.pixels.fill(0);
    return buffer;
  };

  // layers: {x, y: sorted by x; colour: as of colour(); size: in pixels; flags, value: only where flags[i] == value}
  const points = (plot, layers) => {
    const width = Math.round(plot.bbox.width), height = Math.round(plot.bbox.height);
    const { min: x0, max: x1 } = plot.scales.x, { min: y0, max: y1 } = plot.scales.y;
    if (width < 1 || height < 1 || !(x1 > x0) || !(y1 > y0)) return;
    const { pixels, context, image, canvas } = bufferOf(plot, width, height);
    const perX = (width - 1) / (x1 - x0), perY = (height - 1) / (y1 - y0);
    for (const { x, y, colour, size, flags, value } of layers) {
      const end = lower(x, x1 + 1 / perX);
      for (let i = lower(x, x0); i < end; i++) {
        if (flags && flags[i] !== value) continue;
        const column = ((x[i] - x0) * perX) | 0, row = ((y1 - y[i]) * perY) | 0;
        if (row < 0 || row >= height) continue;
        const right = Math.min(column + size, width), bottom = Math.min(row + size, height);
        for (let line = row; line < bottom; line++) {
          for (let at = line * width + column, last = line * width + right; at < last; at++) pixels[at] = colour;
        }
      }
    }
    context.putImageData(image, 0, 0);
    plot.ctx.drawImage(canvas, Math.round(plot.bbox.left), Math.round(plot.bbox.top));
  };

  // "#0063b2" as a pixel, in the byte order of this machine.
  const little = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
  const colour = (text) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
    return (little ? (255 << 24) | (blue << 16) | (green << 8) | red : (red << 24) | (green << 16) | (blue << 8) | 255) >>> 0;
  };

  window.scatter = { points, colour, lower };
})();
