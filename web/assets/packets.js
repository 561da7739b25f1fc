// Reads the files of packets and of sequence diagrams, which quicsat/site/packets.py makes.
"use strict";
(() => {
  const decode = (bytes) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const begin = 4 + view.getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, begin)));
    const columns = new Map(head.columns.map((column) => [column.name, { ...column, at: [] }]));
    let end = begin;
    for (let plane = 0; plane < 4; plane++) for (const column of columns.values()) if (plane < column.planes) { column.at.push(end); end += column.count; }
    const known = new Map();
    const column = (name, factor = 1) => {
      if (known.has(name)) return known.get(name);
      const { count, scale, at } = columns.get(name) || { count: 0, scale: 1, at: [] };
      const coded = new Uint32Array(count);
      for (const [plane, start] of at.entries()) for (let i = 0; i < count; i++) coded[i] |= bytes[start + i] << (8 * plane);
      const values = new Float64Array(count);
      const unit = scale * factor;
      let sum = 0;
      for (let i = 0; i < count; i++) {
        sum += (coded[i] >>> 1) ^ -(coded[i] & 1);
        values[i] = sum * unit;
      }
      known.set(name, values);
      return values;
    };
    return { every: head.every, texts: head.texts, column };
  };
  // A file is a script that calls take: a page that was opened from a file can load nothing else.
  const waiting = new Map();
  const take = (text) => waiting.get(document.currentScript.src)?.(text);
  const fetched = (address) => new Promise((done, failed) => {
    const element = document.createElement("script");
    element.src = address;
    waiting.set(element.src, done);
    element.addEventListener("error", () => failed(new Error(`${address} is not there`)));
    element.addEventListener("load", () => failed(new Error(`${address} is damaged`))); // without effect if it called take
    document.head.append(element);
  });
  const read = async (address) => {
    const text = atob(await fetched(address));
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return decode(new Uint8Array(await new Response(stream).arrayBuffer()));
  };
  const known = new Map();
  const load = (address) => {
    const full = new URL(address, document.baseURI).href;
    if (!known.has(full)) known.set(full, read(full));
    return known.get(full);
  };
  // Words and colours of what a transfer waits for, in the order of TimeShare in quicsat/model/time_shares.py.
  window.timeShares = [["handshake", "#a8a8a8"], ["waiting for a request", "#cfcfcf"], ["link at its full rate", "#009e73"], ["slow start", "#56b4e9"], ["congestion window", "#0072b2"], ["pacing", "#5b4fc4"],
    ["connection flow control", "#e69f00"], ["stream flow control", "#f0c75e"], ["application", "#cc79a7"], ["recovery", "#d55e00"], ["silence until a PTO", "#a03000"], ["link outage", "#1a1a1a"], ["tail", "#882255"], ["unknown", "#ffd9ec"]];
  window.packetFile = { load, take };
})();
