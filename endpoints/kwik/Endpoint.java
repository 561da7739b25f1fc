import java.io.*;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.*;
import java.security.cert.*;
import java.security.cert.Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
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
    static final String ALPN = "hq-interop";
    static final String TEST = System.getenv("TESTCASE");
    static final String KEYS = System.getenv("SSLKEYLOGFILE");
    /** Far more than a long link holds, so that no window bounds the goodput. */
    static final long WINDOW = 32 << 20;

    public static void main(String[] urls) throws Exception {
        if ("server".equals(System.getenv("ROLE"))) {
            serve();
            return;
        }
        try {
            fetchAll(Arrays.stream(urls).map(URI::create).toList());
        } catch (Exception fault) {
            System.err.println(fault);
            System.exit(1);
        }
        System.exit(0);
    }

    // ---- server

    static void serve() throws Exception {
        ServerConnectionConfig config = ServerConnectionConfig.builder()
                .maxIdleTimeoutInSeconds(60).maxConnectionBufferSize(WINDOW).maxBidirectionalStreamBufferSize(WINDOW)
                .maxOpenPeerInitiatedBidirectionalStreams(1000)
                .retryRequired(TEST.equals("retry") ? RetryRequired.Always : RetryRequired.Never)
                .build();
        List<QuicVersion> versions = new ArrayList<>(List.of(QuicVersion.V1));
        if (TEST.equals("v2")) versions.add(0, QuicVersion.V2);
        ServerConnector connector = ServerConnector.builder()
                .withPort(443).withKeyStore(identity(), "leaf", new char[0])
                .withSupportedVersions(versions).withConfiguration(config)
                .withLogger(new NullLogger()).build();
        connector.registerApplicationProtocol(ALPN, new Http09());
        connector.start();
        // Nothing is left to write when it is told to end.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
    }

    /** The server's key and certificates; kwik's own reader of PEM files knows RSA keys only. */
    static KeyStore identity() throws Exception {
        String pem = Files.readString(Path.of("/certs/priv.key")).replaceAll("-----[A-Z ]+-----|\\s", "");
        var encoded = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem));
        PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(encoded);
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("leaf", key, new char[0], certificates("/certs/cert.pem").toArray(Certificate[]::new));
        return store;
    }

    static List<Certificate> certificates(String path) throws Exception {
        try (InputStream stream = Files.newInputStream(Path.of(path))) {
            return new ArrayList<>(CertificateFactory.getInstance("X.509").generateCertificates(stream));
        }
    }

    static class Http09 implements ApplicationProtocolConnectionFactory {
        final ExecutorService workers = Executors.newCachedThreadPool();

        public ApplicationProtocolConnection createConnection(String protocol, QuicConnection connection) {
            return new ApplicationProtocolConnection() {
                public void acceptPeerInitiatedStream(QuicStream stream) {
                    workers.submit(() -> answer(stream));
                }
            };
        }

        public int maxConcurrentPeerInitiatedBidirectionalStreams() {
            return 1000;
        }

        public long maxTotalPeerInitiatedBidirectionalStreams() {
            return Long.MAX_VALUE;
        }
    }

    static void answer(QuicStream stream) {
        try {
            StringBuilder request = new StringBuilder();
            for (int c; (c = stream.getInputStream().read()) != -1 && c != '\n'; ) request.append((char) c);
            String path = request.toString().trim().replaceFirst("^GET /*", "");
            Files.copy(Path.of("/www", path), stream.getOutputStream());
            stream.getOutputStream().close();
        } catch (IOException | RuntimeException fault) {
            System.err.println(fault);
            stream.resetStream(1);
        }
    }

    // ---- client

    static void fetchAll(List<URI> uris) throws Exception {
        switch (TEST) {
            case "resumption", "zerortt" -> fetch(uris.subList(1, uris.size()), fetch(uris.subList(0, 1), null));
            case "multiconnect" -> {
                for (URI uri : uris) fetch(List.of(uri), null);
            }
            default -> fetch(uris, null);
        }
    }

    /** Fetch files over one connection; its last session ticket, or null. */
    static QuicSessionTicket fetch(List<URI> uris, QuicSessionTicket ticket) throws Exception {
        QuicClientConnection.Builder builder = QuicClientConnection.newBuilder()
                .uri(uris.get(0)).applicationProtocol(ALPN).customTrustManager(new Authority())
                .connectTimeout(Duration.ofSeconds(30)).maxIdleTimeout(Duration.ofSeconds(60))
                .defaultStreamReceiveBufferSize(WINDOW);
        if (TEST.equals("chacha20")) builder.cipherSuite(CipherSuite.TLS_CHACHA20_POLY1305_SHA256);
        if (TEST.equals("v2")) builder.initialVersion(QuicVersion.V1).preferredVersion(QuicVersion.V2);
        Path secrets = Files.createTempFile("secrets", ""); // Each connection begins its file anew.
        if (KEYS != null) builder.secrets(secrets);
        if (ticket != null) builder.sessionTicket(ticket);
        QuicClientConnection connection = builder.build();
        try {
            return fetch(uris, ticket, connection);
        } finally {
            if (KEYS != null) {
                Files.writeString(Path.of(KEYS), Files.readString(secrets), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
        }
    }

    static QuicSessionTicket fetch(List<URI> uris, QuicSessionTicket ticket, QuicClientConnection connection)
            throws Exception {
        List<QuicStream> early = List.of();
        if (TEST.equals("zerortt") && ticket != null) {
            early = connection.connect(uris.stream().map(uri -> new StreamEarlyData(request(uri), true)).toList());
        } else {
            connection.connect();
        }
        ExecutorService workers = Executors.newCachedThreadPool();
        List<Future<Long>> downloads = new ArrayList<>();
        for (int i = 0; i < uris.size(); i++) {
            URI uri = uris.get(i);
            QuicStream sent = i < early.size() ? early.get(i) : null;
            downloads.add(workers.submit(() -> download(connection, uri, sent)));
        }
        for (Future<Long> download : downloads) download.get();
        List<QuicSessionTicket> tickets = connection.getNewSessionTickets();
        connection.close();
        return tickets.isEmpty() ? null : tickets.get(tickets.size() - 1);
    }

    static final AtomicBoolean updated = new AtomicBoolean();

    /** Checks against the test's authority. kwik says that any key were RSA's, for which Java wants other key usages. */
    static class Authority implements X509TrustManager {
        final X509TrustManager pkix;

        Authority() throws Exception {
            KeyStore trusted = KeyStore.getInstance("PKCS12");
            trusted.load(null, null);
            trusted.setCertificateEntry("ca", certificates("/certs/ca.pem").get(0));
            TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
            factory.init(trusted);
            pkix = (X509TrustManager) factory.getTrustManagers()[0];
        }

        public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
            pkix.checkServerTrusted(chain, "UNKNOWN");
        }

        public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
            throw new CertificateException("a client asks for no client's certificate");
        }

        public X509Certificate[] getAcceptedIssuers() {
            return pkix.getAcceptedIssuers();
        }
    }

    static byte[] request(URI uri) {
        return ("GET " + uri.getPath() + "\r\n").getBytes(StandardCharsets.US_ASCII);
    }

    static long download(QuicClientConnection connection, URI uri, QuicStream sent) throws IOException {
        QuicStream stream = sent;
        if (stream == null) {
            stream = connection.createStream(true);
            stream.getOutputStream().write(request(uri));
            stream.getOutputStream().close();
        }
        Path file = Path.of("/downloads", Path.of(uri.getPath()).getFileName().toString());
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
            out.write(stream.getInputStream().readNBytes(1));
            // Not before the handshake is confirmed, as it is when an answer arrives.
            if (TEST.equals("keyupdate") && !updated.getAndSet(true)) {
                ((QuicClientConnectionImpl) connection).updateKeys();
            }
            return stream.getInputStream().transferTo(out);
        }
    }
}
