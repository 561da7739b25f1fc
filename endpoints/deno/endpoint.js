// quinn, as Deno offers it in Deno.QuicEndpoint, as an endpoint for HTTP/0.9, client or server, by ROLE and TESTCASE.

const alpnProtocols = ["hq-interop"];
const settings = { alpnProtocols, maxIdleTimeout: 60_000, congestionControl: undefined };
const [role, test] = ["ROLE", "TESTCASE"].map((name) => Deno.env.get(name));
const urls = Deno.args.filter((word) => word.startsWith("https://")).map((word) => new URL(word));
const congestionControl = Deno.args.find((word) => !word.startsWith("https://")); // throughput, low-latency or default
if (congestionControl) settings.congestionControl = congestionControl;

async function serve() {
  const [cert, key] = ["cert.pem", "priv.key"].map((name) => Deno.readTextFileSync(`/certs/${name}`));
  const endpoint = new Deno.QuicEndpoint({ hostname: "::", port: 443 });
  const listener = endpoint.listen({ ...settings, cert, key, maxConcurrentBidirectionalStreams: 1000 });
  for (;;) accept(await listener.incoming()).catch(() => {}); // The peer's business: the server goes on.
}

async function accept(incoming) {
  const connection = await incoming.accept();
  for await (const stream of connection.incomingBidirectionalStreams) answer(stream).catch(() => {});
}

async function answer({ readable, writable }) {
  const [, name] = /^GET \/*(\S+)/.exec(await new Response(readable).text()) ?? [];
  try {
    const file = await Deno.open(`/www/${name}`);
    await file.readable.pipeTo(writable);
  } catch (fault) {
    await writable.abort(fault); // Deno ends the stream, and does not reset it.
  }
}

async function fetchOverOneConnection(batch) {
  const { hostname, port } = batch[0];
  const caCerts = [Deno.readTextFileSync("/certs/ca.pem")];
  const connection = await Deno.connectQuic({ ...settings, hostname, port: Number(port) || 443, caCerts });
  await Promise.all(batch.map((url) => fetchFile(connection, url)));
  connection.close({ closeCode: 0, reason: "" });
  await connection.closed.catch(() => {});
}

async function fetchFile(connection, { pathname }) {
  const { readable, writable } = await connection.createBidirectionalStream({ waitUntilAvailable: true });
  const writer = writable.getWriter();
  await writer.write(new TextEncoder().encode(`GET ${pathname}\r\n`));
  await writer.close();
  const file = await Deno.create(`/downloads/${pathname.split("/").at(-1)}`);
  await readable.pipeTo(file.writable);
}

if (role === "server") {
  Deno.addSignalListener("SIGTERM", () => Deno.exit(0));
  await serve();
} else {
  for (const batch of test === "multiconnect" ? urls.map((url) => [url]) : [urls]) await fetchOverOneConnection(batch);
}
