#!/endpoint/bun
// lsquic, as Bun offers it in node:quic, as an endpoint: HTTP/0.9 and HTTP/3, client or server, by ROLE and TESTCASE.

import { createPrivateKey } from "node:crypto";
import { lookup } from "node:dns/promises";
import { appendFileSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join } from "node:path";
import { connect, listen } from "node:quic";
import { parseArgs } from "node:util";

const test = process.env.TESTCASE;
const h3 = test === "http3";
const resumes = test === "resumption" || test === "zerortt";
const keys = process.env.SSLKEYLOGFILE;
const { values: options, positionals: urls } = parseArgs({
  options: { cc: { type: "string" } }, // reno, cubic or bbr
  allowPositionals: true,
});

// Far more than a long link holds, so that no window bounds the goodput.
const window = 32n << 20n;
const settings = {
  alpn: h3 ? "h3" : "hq-interop",
  handshakeTimeout: 16_000, // A server accepts hardly more.
  maxStreamWindow: window,
  maxWindow: window,
  transportParams: {
    initialMaxData: window,
    initialMaxStreamDataBidiLocal: window,
    initialMaxStreamDataBidiRemote: window,
    initialMaxStreamsBidi: 1000n,
    maxIdleTimeout: 60n,
  },
};
if (options.cc) settings.cc = options.cc;
if (keys) {
  settings.keylog = true;
  settings.onkeylog = (line) => appendFileSync(keys, line.endsWith("\n") ? line : `${line}\n`);
}

async function runServer() {
  const identity = {
    keys: [createPrivateKey(readFileSync("/certs/priv.key"))],
    certs: [readFileSync("/certs/cert.pem")],
  };
  const accept = (session) => {
    session.onerror = () => {}; // The peer's business: the server goes on.
    session.onstream = (stream) => {
      stream.onerror = () => {};
      answer(stream).catch(() => stream.destroy(undefined, { code: 1n }));
    };
  };
  await listen(accept, {
    ...settings,
    endpoint: { address: "[::]:443" },
    sni: { "*": identity },
    onheaders: h3 ? respond : undefined,
  });
}

async function answer(stream) {
  if (h3) return;
  let request = "";
  for await (const parts of stream) {
    for (const part of parts) request += Buffer.from(part).toString("latin1");
    if (request.includes("\n")) break;
  }
  const [, path] = /^GET (\S+)/.exec(request);
  const file = await open(join("/www", path));
  stream.highWaterMark = 4 << 20;
  stream.setBody(content(file));
}

// Parts of a file, read as they are sent. Bun 1.4.5 resets a stream that gets the file handle itself.
async function* content(file) {
  try {
    for (;;) {
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(1 << 18));
      if (!bytesRead) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function respond(headers) {
  try {
    const file = await open(join("/www", headers[":path"]));
    this.sendHeaders({ ":status": "200" });
    this.setBody(content(file));
  } catch {
    this.sendHeaders({ ":status": "404" }, { terminal: true });
  }
}

async function runClient() {
  const halves = resumes ? [urls.slice(0, 1), urls.slice(1)] : [urls];
  let ticket;
  for (const batch of test === "multiconnect" ? urls.map((url) => [url]) : halves)
    ticket = await fetchOverOneConnection(batch, ticket);
}

// Gives a session ticket if the test needs one.
async function fetchOverOneConnection(batch, sessionTicket) {
  const { hostname, port } = new URL(batch[0]);
  const { address, family } = await lookup(hostname);
  const ticket = Promise.withResolvers();
  const session = await connect(family === 6 ? `[${address}]:${port || 443}` : `${address}:${port || 443}`, {
    ...settings,
    // Left to itself it binds to IPv4 only.
    endpoint: { address: family === 6 ? "[::]:0" : "0.0.0.0:0" },
    ca: [readFileSync("/certs/ca.pem")],
    servername: hostname,
    verifyPeer: "strict",
    enableEarlyData: resumes, // Without it a ticket is not used at all.
    onsessionticket: ticket.resolve,
    sessionTicket,
  });
  const lost = new Promise((_, reject) => (session.onerror = reject));
  if (test !== "zerortt" || !sessionTicket) await Promise.race([session.opened, lost]);
  await Promise.race([Promise.all(batch.map((url) => fetchFile(session, new URL(url)))), lost]);
  const next = resumes && !sessionTicket ? await ticket.promise : undefined;
  await session.close();
  return next;
}

async function fetchFile(session, { host, pathname }) {
  const request = { body: `GET ${pathname}\r\n` };
  const headers = { ":method": "GET", ":scheme": "https", ":authority": host, ":path": pathname };
  const stream = await session.createBidirectionalStream(h3 ? { headers } : request);
  const aborted = new Promise((_, reject) => (stream.onreset = stream.onerror = reject));
  if (h3) stream.onheaders = ({ ":status": status }) => status === "200" || stream.destroy(new Error(`status ${status}`));
  const file = Bun.file(join("/downloads", basename(pathname))).writer({ highWaterMark: 1 << 20 });
  const receive = async () => {
    for await (const parts of stream) for (const part of parts) file.write(part);
  };
  await Promise.race([receive(), aborted]);
  await file.end();
}

process.on("SIGTERM", () => process.exit(0));
if (process.env.ROLE === "server") {
  await runServer();
} else {
  const fail = (fault) => (console.error(`${fault}`), process.exit(1));
  await runClient().then(() => process.exit(0), fail);
}
