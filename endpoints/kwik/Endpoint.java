import java.io.*;
import java.net.URI;
import java.nio.file.*;
import java.security.*;
import java.security.cert.*;
import java.security.cert.Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import javax.net.ssl.*;
import tech.kwik.agent15.TlsConstants.CipherSuite;
import tech.kwik.core.*;
import tech.kwik.core.QuicClientConnection.StreamEarlyData;
import tech.kwik.core.QuicConnection.QuicVersion;
import tech.kwik.core.impl.QuicClientConnectionImpl;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.server.*;
import tech.kwik.core.server.ServerConnectionConfig.RetryRequired;

/** kwik as an endpoint: HTTP/0.9 over QUIC, client or server, chosen by ROLE and TESTCASE. */
public class Endpoint {
    static final String TEST = System.getenv("TESTCASE"), KEYS = System.getenv("SSLKEYLOGFILE"), ALPN = "hq-interop";
    /** Far more than a long link holds, so that no window bounds the goodput. */
    static final long WINDOW = 32 << 20;
    static final ExecutorService WORKERS = Executors.newCachedThreadPool();

    public static void main(String[] urls) throws Exception {
        try {
            if (System.getenv("ROLE").equals("server")) serve();
            else fetchAll(Arrays.stream(urls).map(URI::create).toList());
        } catch (Exception fault) {
            System.err.println(fault);
            System.exit(1);
        }
    }

    static void fetchAll(List<URI> uris) throws Exception {
        switch (TEST) {
            case "resumption", "zerortt" -> fetch(uris.subList(1, uris.size()), fetch(uris.subList(0, 1), null));
            case "multiconnect" -> { for (URI uri : uris) fetch(List.of(uri), null); }
            default -> fetch(uris, null);
        }
        System.exit(0);
    }

    static List<? extends Certificate> certificates(String path) throws Exception {
        var pem = new ByteArrayInputStream(Files.readAllBytes(Path.of(path)));
        return List.copyOf(CertificateFactory.getInstance("X.509").generateCertificates(pem));
    }

    static void serve() throws Exception {
        // kwik's own reader of PEM files knows RSA keys only.
        String pem = Files.readString(Path.of("/certs/priv.key")).replaceAll("-----[A-Z ]+-----|\\s", "");
        var encoded = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem));
        PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(encoded);
        KeyStore identity = KeyStore.getInstance("PKCS12");
        identity.load(null, null);
        identity.setKeyEntry("leaf", key, new char[0], certificates("/certs/cert.pem").toArray(Certificate[]::new));
        var config = ServerConnectionConfig.builder().maxIdleTimeoutInSeconds(60).maxConnectionBufferSize(WINDOW)
                .maxBidirectionalStreamBufferSize(WINDOW).maxOpenPeerInitiatedBidirectionalStreams(1000)
                .retryRequired(TEST.equals("retry") ? RetryRequired.Always : RetryRequired.Never).build();
        var versions = TEST.equals("v2") ? List.of(QuicVersion.V2, QuicVersion.V1) : List.of(QuicVersion.V1);
        var connector = ServerConnector.builder().withPort(443).withKeyStore(identity, "leaf", new char[0])
                .withSupportedVersions(versions).withConfiguration(config).withLogger(new NullLogger()).build();
        connector.registerApplicationProtocol(ALPN, (protocol, connection) -> new ApplicationProtocolConnection() {
            public void acceptPeerInitiatedStream(QuicStream stream) { WORKERS.submit(() -> answer(stream)); }
        });
        connector.start();
        // Nothing is left to write when it is told to end.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
    }

    static void answer(QuicStream stream) {
        try {
            String request = new BufferedReader(new InputStreamReader(stream.getInputStream())).readLine();
            Files.copy(Path.of("/www", request.replaceFirst("^GET /*", "").trim()), stream.getOutputStream());
            stream.getOutputStream().close();
        } catch (IOException | RuntimeException fault) {
            System.err.println(fault);
            stream.resetStream(1);
        }
    }

    /** Trusts the test's authority alone. kwik says that any key were RSA's, for which Java wants other key usages. */
    static X509TrustManager authority() throws Exception {
        var anchor = new TrustAnchor((X509Certificate) certificates("/certs/ca.pem").get(0), null);
        var parameters = new PKIXBuilderParameters(Set.of(anchor), null);
        parameters.setRevocationEnabled(false);
        TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
        factory.init(new CertPathTrustManagerParameters(parameters));
        X509TrustManager pkix = (X509TrustManager) factory.getTrustManagers()[0];
        return new X509TrustManager() {
            public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
                pkix.checkServerTrusted(chain, "UNKNOWN");
            }
            public void checkClientTrusted(X509Certificate[] chain, String type) { throw new IllegalStateException(); }
            public X509Certificate[] getAcceptedIssuers() { return pkix.getAcceptedIssuers(); }
        };
    }

    /** Fetch files over one connection; its last session ticket, or null. */
    static QuicSessionTicket fetch(List<URI> uris, QuicSessionTicket ticket) throws Exception {
        Path secrets = Files.createTempFile("secrets", ""); // Each connection begins its file anew.
        var builder = QuicClientConnection.newBuilder().uri(uris.get(0)).applicationProtocol(ALPN).secrets(secrets)
                .customTrustManager(authority()).defaultStreamReceiveBufferSize(WINDOW)
                .connectTimeout(Duration.ofSeconds(30)).maxIdleTimeout(Duration.ofSeconds(60));
        if (TEST.equals("chacha20")) builder.cipherSuite(CipherSuite.TLS_CHACHA20_POLY1305_SHA256);
        if (TEST.equals("v2")) builder.initialVersion(QuicVersion.V1).preferredVersion(QuicVersion.V2);
        if (ticket != null) builder.sessionTicket(ticket);
        QuicClientConnection connection = builder.build();
        try {
            List<URI> first = TEST.equals("zerortt") && ticket != null ? uris : List.of();
            var data = first.stream().map(uri -> new StreamEarlyData(request(uri), true)).toList();
            Iterator<QuicStream> early = connection.connect(data).iterator();
            List<Future<Long>> downloads = new ArrayList<>();
            for (URI uri : uris) {
                QuicStream sent = early.hasNext() ? early.next() : null;
                downloads.add(WORKERS.submit(() -> download(connection, uri, sent)));
            }
            for (Future<Long> download : downloads) download.get();
            List<QuicSessionTicket> tickets = connection.getNewSessionTickets();
            connection.close();
            return tickets.isEmpty() ? null : tickets.get(tickets.size() - 1);
        } finally {
            if (KEYS != null) try (var keys = new FileOutputStream(KEYS, true)) { Files.copy(secrets, keys); }
        }
    }

    static byte[] request(URI uri) { return ("GET " + uri.getPath() + "\r\n").getBytes(); }

    static long download(QuicClientConnection connection, URI uri, QuicStream sent) throws IOException {
        QuicStream stream = sent != null ? sent : connection.createStream(true);
        if (sent == null) try (OutputStream out = stream.getOutputStream()) { out.write(request(uri)); }
        Path file = Path.of("/downloads", Path.of(uri.getPath()).getFileName().toString());
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
            out.write(stream.getInputStream().readNBytes(1));
            // Not before the handshake is confirmed, as it is when an answer arrives.
            boolean update = TEST.equals("keyupdate") && stream.getStreamId() == 0;
            if (update) ((QuicClientConnectionImpl) connection).updateKeys();
            return stream.getInputStream().transferTo(out);
        }
    }
}
