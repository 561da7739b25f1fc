import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.*;
import io.netty.channel.*;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.ChannelInputShutdownReadComplete;
import io.netty.channel.socket.nio.NioDatagramChannel;
import io.netty.handler.codec.quic.*;
import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

/** quiche inside Netty as an endpoint: HTTP/0.9 over QUIC, client or server, chosen by ROLE and TESTCASE. */
public class Endpoint {
    static final String TEST = System.getenv("TESTCASE"), KEYS = System.getenv("SSLKEYLOGFILE");
    static final String QLOG = System.getenv().getOrDefault("QLOGDIR", ""), ALPN = "hq-interop";
    /** Far more than a long link holds, so that no window bounds the goodput. */
    static final long WINDOW = 32 << 20;
    static final EventLoopGroup LOOP = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());

    /** Arguments are URLs; before them can stand RENO, CUBIC or BBR. */
    public static void main(String[] words) throws Exception {
        try {
            List<URI> urls = Arrays.stream(words).filter(word -> word.startsWith("https:")).map(URI::create).toList();
            var control = Arrays.stream(words).filter(word -> !word.startsWith("https:")).findFirst();
            if (System.getenv("ROLE").equals("server")) serve(control);
            else fetchAll(urls, control);
        } catch (Exception fault) {
            System.err.println(fault);
            System.exit(1);
        }
    }

    static <B extends QuicCodecBuilder<B>> B withSettings(B builder, Optional<String> control) {
        control.map(QuicCongestionControlAlgorithm::valueOf).ifPresent(builder::congestionControlAlgorithm);
        return builder.maxIdleTimeout(60, TimeUnit.SECONDS).initialMaxData(WINDOW)
                .initialMaxStreamDataBidirectionalLocal(WINDOW).initialMaxStreamDataBidirectionalRemote(WINDOW)
                .initialMaxStreamsBidirectional(1000);
    }

    static void serve(Optional<String> control) throws Exception {
        var identity = QuicSslContextBuilder.forServer(new File("/certs/priv.key"), null, new File("/certs/cert.pem"));
        var codec = withSettings(new QuicServerCodecBuilder(), control).sslContext(keeping(identity).build())
                .tokenHandler(TEST.equals("retry") ? InsecureQuicTokenHandler.INSTANCE : null)
                .streamHandler(new ChannelInitializer<QuicStreamChannel>() {
                    protected void initChannel(QuicStreamChannel stream) { stream.pipeline().addLast(new Answer()); }
                });
        if (!QLOG.isEmpty()) codec.option(QuicChannelOption.QLOG, qlog());
        Channel socket = bound(codec.build(), new InetSocketAddress(443));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            socket.close().syncUninterruptibly();
            Runtime.getRuntime().halt(0);
        }));
    }

    static Channel bound(ChannelHandler codec, InetSocketAddress address) throws Exception {
        return new Bootstrap().group(LOOP).channel(NioDatagramChannel.class).handler(codec).bind(address).sync().channel();
    }

    static QLogConfiguration qlog() { return new QLogConfiguration(QLOG, "netty", "netty"); }

    static QuicSslContextBuilder keeping(QuicSslContextBuilder builder) throws IOException {
        builder.applicationProtocols(ALPN);
        if (KEYS == null) return builder;
        var file = new PrintWriter(new FileWriter(KEYS, true), true);
        return builder.keylog((engine, line) -> file.println(line));
    }

    /** Answers a request as soon as its line is there. */
    static class Answer extends ChannelInboundHandlerAdapter {
        final StringBuilder request = new StringBuilder();

        public void channelRead(ChannelHandlerContext context, Object message) throws Exception {
            ByteBuf part = (ByteBuf) message;
            request.append(part.toString(StandardCharsets.US_ASCII));
            part.release();
            if (request.indexOf("\n") < 0) return;
            Path file = Path.of("/www", request.toString().replaceFirst("^GET /*", "").trim());
            request.setLength(0);
            byte[] content = Files.readAllBytes(file);
            context.writeAndFlush(Unpooled.wrappedBuffer(content)).addListener(QuicStreamChannel.SHUTDOWN_OUTPUT);
        }

        public void exceptionCaught(ChannelHandlerContext context, Throwable fault) {
            System.err.println(fault);
            ((QuicStreamChannel) context.channel()).shutdownOutput(1);
        }
    }

    static void fetchAll(List<URI> urls, Optional<String> control) throws Exception {
        var ssl = keeping(QuicSslContextBuilder.forClient().trustManager(new File("/certs/ca.pem"))).build();
        List<List<URI>> batches = switch (TEST) {
            case "resumption" -> List.of(urls.subList(0, 1), urls.subList(1, urls.size()));
            case "multiconnect" -> urls.stream().map(List::of).toList();
            default -> List.of(urls);
        };
        for (List<URI> batch : batches) fetch(batch, ssl, control);
        System.exit(0);
    }

    /** Fetch files over one connection. */
    static void fetch(List<URI> urls, QuicSslContext ssl, Optional<String> control) throws Exception {
        String host = urls.get(0).getHost();
        int port = urls.get(0).getPort() < 0 ? 443 : urls.get(0).getPort();
        var codec = withSettings(new QuicClientCodecBuilder(), control)
                .sslEngineProvider(channel -> ssl.newEngine(channel.alloc(), host, port));
        Channel socket = bound(codec.build(), new InetSocketAddress(0));
        var bootstrap = QuicChannel.newBootstrap(socket).remoteAddress(new InetSocketAddress(host, port));
        if (!QLOG.isEmpty()) bootstrap.option(QuicChannelOption.QLOG, qlog());
        QuicChannel connection = bootstrap.handler(new ChannelInboundHandlerAdapter()).connect().get();
        List<Download> downloads = new ArrayList<>();
        for (URI url : urls) {
            Download download = new Download(url.getPath());
            downloads.add(download);
            QuicStreamChannel stream = connection.createStream(QuicStreamType.BIDIRECTIONAL, download).get();
            ByteBuf request = Unpooled.copiedBuffer("GET " + url.getPath() + "\r\n", StandardCharsets.US_ASCII);
            stream.writeAndFlush(request).addListener(QuicStreamChannel.SHUTDOWN_OUTPUT);
        }
        connection.closeFuture().addListener(end -> downloads.forEach(Download::lost));
        for (Download download : downloads) download.ended.get();
        connection.close(true, 0, Unpooled.EMPTY_BUFFER).sync();
        socket.close().sync();
    }

    /** Stores what a stream carries. */
    static class Download extends ChannelInboundHandlerAdapter {
        final CompletableFuture<Void> ended = new CompletableFuture<>();
        final OutputStream file;

        Download(String path) throws IOException {
            Path name = Path.of("/downloads", Path.of(path).getFileName().toString());
            file = new BufferedOutputStream(Files.newOutputStream(name));
        }

        void lost() { ended.completeExceptionally(new IOException("connection ended")); }

        public void channelRead(ChannelHandlerContext context, Object message) throws Exception {
            ByteBuf part = (ByteBuf) message;
            part.readBytes(file, part.readableBytes());
            part.release();
        }

        public void userEventTriggered(ChannelHandlerContext context, Object event) throws Exception {
            if (event != ChannelInputShutdownReadComplete.INSTANCE) return;
            file.close();
            ended.complete(null);
        }

        public void exceptionCaught(ChannelHandlerContext context, Throwable fault) { ended.completeExceptionally(fault); }
    }
}
