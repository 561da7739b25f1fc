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
import javax.net.ssl.*;
import tech.kwik.core.QuicConnection.QuicVersion;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.server.*;
import tech.kwik.flupke.*;
import tech.kwik.flupke.webtransport.*;

/** flupke as an endpoint for WebTransport over streams, client or server, chosen by ROLE and TESTCASE. */
public class Endpoint {
    /** For example transfer-bidirectional-receive if this side requests the files, else transfer. */
    static final String TEST = System.getenv("TESTCASE");
    static final int WINDOW = 32 << 20, STREAMS = 1000;
    static final ExecutorService WORKERS = Executors.newCachedThreadPool();

    public static void main(String[] urls) throws Exception {
        try {
            if (System.getenv("ROLE").equals("server")) serve();
            else connect(Arrays.stream(urls).map(URI::create).toList());
        } catch (Exception fault) {
            System.err.println(fault);
            System.exit(1);
        }
    }

    static List<? extends Certificate> certificates(String path) throws Exception {
        var pem = new ByteArrayInputStream(Files.readAllBytes(Path.of(path)));
        return List.copyOf(CertificateFactory.getInstance("X.509").generateCertificates(pem));
    }

    static void serve() throws Exception {
        String pem = Files.readString(Path.of("/certs/priv.key")).replaceAll("-----[A-Z ]+-----|\\s", "");
        var encoded = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem));
        KeyStore identity = KeyStore.getInstance("PKCS12");
        identity.load(null, null);
        Certificate[] chain = certificates("/certs/cert.pem").toArray(Certificate[]::new);
        identity.setKeyEntry("leaf", KeyFactory.getInstance("EC").generatePrivate(encoded), new char[0], chain);
        var config = ServerConnectionConfig.builder().maxIdleTimeoutInSeconds(60).maxConnectionBufferSize(WINDOW)
                .maxBidirectionalStreamBufferSize(WINDOW).maxUnidirectionalStreamBufferSize(WINDOW)
                .maxOpenPeerInitiatedBidirectionalStreams(STREAMS)
                .maxOpenPeerInitiatedUnidirectionalStreams(STREAMS).build();
        var connector = ServerConnector.builder().withPort(443).withKeyStore(identity, "leaf", new char[0])
                .withSupportedVersions(List.of(QuicVersion.V1)).withConfiguration(config).withLogger(new NullLogger())
                .build();
        var sessions = new WebTransportHttp3ApplicationProtocolFactory((request, response) -> {
            if (!request.method().equals("CONNECT")) response.setStatus(404); // With a status there is no session.
        });
        List<String> wanted = Arrays.stream(System.getenv().getOrDefault("REQUESTS", "").split(" ")).toList();
        try (DirectoryStream<Path> folders = Files.newDirectoryStream(Path.of("/www"), Files::isDirectory)) {
            for (Path folder : folders)
                sessions.registerWebTransportServer("/" + folder.getFileName(), session -> WORKERS.submit(() -> {
                    Transfer transfer = new Transfer(folder.getFileName().toString());
                    transfer.attach(session);
                    session.open();
                    return transfer.run(session, wanted);
                }));
        }
        connector.registerApplicationProtocol("h3", sessions);
        connector.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
    }

    static void connect(List<URI> urls) throws Exception {
        URI url = urls.get(0);
        String folder = url.getPath().split("/")[1];
        var client = (Http3Client) Http3Client.newBuilder().trustManager(authority())
                .maxAdditionalOpenPeerInitiatedUnidirectionalStreams(STREAMS)
                .maxAdditionalOpenPeerInitiatedBidirectionalStreams(STREAMS)
                .connectTimeout(Duration.ofSeconds(30)).build();
        URI address = new URI("https", null, url.getHost(), url.getPort() < 0 ? 443 : url.getPort(), "/" + folder, null, null);
        Transfer transfer = new Transfer(folder);
        Session session = ClientSessionFactory.newBuilder().serverUri(address).httpClient(client).build()
                .createSession(address, transfer::unidirectional, transfer::bidirectional);
        transfer.attach(session);
        session.open();
        System.exit(transfer.run(session, urls.stream().map(URI::getPath).toList()) ? 0 : 1);
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

    /** A session: requests of this side, if the test has any, and answers to the other side's. */
    static class Transfer {
        final String folder;
        final CompletableFuture<Void> ended = new CompletableFuture<>();
        final Map<String, CompletableFuture<Void>> missing = new ConcurrentHashMap<>();
        volatile Session session;

        Transfer(String folder) { this.folder = folder; }

        void attach(Session session) {
            this.session = session;
            session.registerSessionTerminatedEventListener((code, reason) -> ended.complete(null));
            session.setUnidirectionalStreamReceiveHandler(this::unidirectional);
            session.setBidirectionalStreamReceiveHandler(this::bidirectional);
        }

        /** True if all files arrived; at once if this side requests none and the session ended. */
        boolean run(Session session, List<String> wanted) throws Exception {
            if (TEST.equals("transfer")) {
                ended.get();
                return true;
            }
            List<String> names = wanted.stream().map(path -> Path.of(path).getFileName().toString()).toList();
            names.forEach(name -> missing.put(name, new CompletableFuture<>()));
            Files.createDirectories(Path.of("/downloads", folder));
            for (String name : names) WORKERS.submit(() -> { request(session, name); return null; });
            var all = CompletableFuture.allOf(missing.values().toArray(CompletableFuture[]::new));
            CompletableFuture.anyOf(all, ended).get();
            if (!ended.isDone()) session.close();
            return all.isDone();
        }

        void request(Session session, String name) throws IOException {
            boolean answered = TEST.contains("bidirectional");
            var stream = answered ? session.createBidirectionalStream() : session.createUnidirectionalStream();
            try (OutputStream out = stream.getOutputStream()) { out.write(("GET " + name).getBytes()); }
            if (answered) store(name, stream.getInputStream());
        }

        void store(String name, InputStream content) throws IOException {
            Files.copy(content, Path.of("/downloads", folder, Path.of(name).getFileName().toString()));
            missing.get(name).complete(null);
        }

        void unidirectional(WebTransportStream stream) { WORKERS.submit(() -> { unidirectionalMessage(stream); return null; }); }

        void bidirectional(WebTransportStream stream) { WORKERS.submit(() -> { answer(stream); return null; }); }

        void unidirectionalMessage(WebTransportStream stream) throws IOException {
            var in = new BufferedInputStream(stream.getInputStream());
            String line = line(in);
            String name = line.substring(line.indexOf(' ') + 1).trim();
            if (line.startsWith("PUSH ")) {
                store(name, in);
                return;
            }
            try (OutputStream out = session.createUnidirectionalStream().getOutputStream()) {
                out.write(("PUSH " + name + "\n").getBytes());
                Files.copy(file(name), out);
            }
        }

        void answer(WebTransportStream stream) throws IOException {
            String name = line(stream.getInputStream()).replaceFirst("^GET ", "").trim();
            try (OutputStream out = stream.getOutputStream()) { Files.copy(file(name), out); }
        }

        Path file(String name) { return Path.of("/www", folder, Path.of(name).getFileName().toString()); }

        /** The first line, or all if there is no line break. */
        static String line(InputStream in) throws IOException {
            var line = new ByteArrayOutputStream();
            for (int octet = in.read(); octet >= 0 && octet != '\n'; octet = in.read()) line.write(octet);
            return line.toString(StandardCharsets.UTF_8);
        }
    }
}
