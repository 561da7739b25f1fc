// Reads the files of packets and of sequence diagrams, which interop/site/packets.py makes.
"use strict";
(() => {
  const decode = (bytes) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const begin = 4 + view.getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, begin)));
    const places = new Map();
    let at = begin;
    for (const column of head.columns) { places.set(column.name, { ...column, at }); at += 4 * column.count; }
    const known = new Map();
    const column = (name, factor = 1) => {
      if (known.has(name)) return known.get(name);
      const { count, scale, at: start } = places.get(name) || { count: 0, scale: 1, at: 0 };
      const values = new Float64Array(count);
      const unit = scale * factor;
      const b1 = start + count, b2 = b1 + count, b3 = b2 + count;
      let sum = 0;
      for (let i = 0; i < count; i++) {
        const coded = bytes[start + i] | (bytes[b1 + i] << 8) | (bytes[b2 + i] << 16) | (bytes[b3 + i] << 24);
        sum += (coded >>> 1) ^ -(coded & 1);
        values[i] = sum * unit;
      }
      known.set(name, values);
      return values;
    };
    return { every: head.every, texts: head.texts, column };
  };
  const load = async (address) => {
    if (location.protocol === "file:") throw new Error("a browser fetches nothing from files");
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
    const stream = answer.body.pipeThrough(new DecompressionStream("deflate"));
    return decode(new Uint8Array(await new Response(stream).arrayBuffer()));
  };
  window.packetFile = { load };
})();
