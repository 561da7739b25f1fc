//! quinn as an endpoint: HTTP/0.9 over QUIC, client or server, chosen by ROLE and TESTCASE.

use std::env;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, Incoming, QlogConfig, RecvStream, SendStream, ServerConfig};
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer};
use tokio::signal::unix::{signal, SignalKind};
use tokio::task::JoinSet;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const ALPN: &[u8] = b"hq-interop";
/// Bytes of flow control, twice what 100 Mbit/s need over a round trip of 600 ms; the stack's default is 1.25 MB.
const WINDOW: u32 = 16 << 20;

#[derive(Clone)]
struct Settings {
    test: String,
    congestion_control: Arc<dyn ControllerFactory + Send + Sync>,
}

impl Settings {
    /// Settings of one connection; each has a qlog of its own.
    fn transport(&self, name: &str) -> Outcome<Arc<quinn::TransportConfig>> {
        let mut transport = quinn::TransportConfig::default();
        transport.congestion_controller_factory(self.congestion_control.clone());
        transport.stream_receive_window(WINDOW.into()).send_window(2 * u64::from(WINDOW));
        if let Some(directory) = env::var_os("QLOGDIR").filter(|value| !value.is_empty()) {
            let mut qlog = QlogConfig::default();
            let path = Path::new(&directory).join(format!("{name}.sqlog"));
            qlog.title(Some(name.into())).writer(Box::new(BufWriter::new(File::create(path)?)));
            transport.qlog_stream(qlog.into_stream());
        }
        Ok(Arc::new(transport))
    }

    /// ChaCha20 can be the only suite offered; quinn takes the suite of Initial packets from elsewhere.
    fn provider(&self) -> Arc<CryptoProvider> {
        let mut provider = ring::default_provider();
        if self.test == "chacha20" {
            provider.cipher_suites = vec![ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
        }
        Arc::new(provider)
    }
}

fn initial_suite() -> rustls::quic::Suite {
    ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().and_then(|suite| suite.quic_suite()).expect("has QUIC keys")
}

async fn serve(settings: Settings) -> Outcome {
    let certificates = CertificateDer::pem_file_iter("/certs/cert.pem")?.collect::<Result<Vec<_>, _>>()?;
    let mut tls = rustls::ServerConfig::builder_with_provider(settings.provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file("/certs/priv.key")?)?;
    tls.alpn_protocols = vec![ALPN.into()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    if settings.test == "zerortt" {
        tls.max_early_data_size = u32::MAX;
    }
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::with_initial(Arc::new(tls), initial_suite())?));
    // Takes IPv4 too.
    let endpoint = Endpoint::server(config.clone(), "[::]:443".parse()?)?;
    loop {
        let incoming = endpoint.accept().await.ok_or("the socket failed")?;
        if settings.test == "retry" && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        let mut own = config.clone();
        own.transport_config(settings.transport(&format!("server-{}", incoming.orig_dst_cid()))?);
        tokio::spawn(answer_all(incoming, own, settings.test == "zerortt"));
    }
}

async fn answer_all(incoming: Incoming, config: ServerConfig, early: bool) -> Outcome {
    let mut connecting = incoming.accept_with(Arc::new(config))?;
    let connection = if early {
        connecting.into_0rtt().map_err(|_| "no early data")?.0
    } else {
        connecting.handshake_data().await?;
        connecting.await?
    };
    loop {
        let (send, receive) = connection.accept_bi().await?;
        tokio::spawn(async move {
            if let Err(error) = answer(send, receive).await {
                eprintln!("quinn: {error}");
            }
        });
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Outcome {
    let mut request = Vec::new();
    while !request.ends_with(b"\n") {
        match receive.read_chunk(4096, true).await? {
            Some(chunk) if request.len() < 8192 => request.extend_from_slice(&chunk.bytes),
            _ => break,
        }
    }
    let request = String::from_utf8(request)?;
    let path = request.trim_end().strip_prefix("GET /").ok_or("not a GET request")?;
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let mut file = match File::open(Path::new("/www").join(path)) {
        Ok(file) if inside => file,
        _ => return Ok(send.reset(1u32.into())?),
    };
    let mut part = vec![0; 1 << 18];
    loop {
        match file.read(&mut part)? {
            0 => break,
            length => send.write_all(&part[..length]).await?,
        }
    }
    Ok(send.finish()?)
}

struct Client {
    settings: Settings,
    config: ClientConfig,
    connections: usize,
}

impl Client {
    fn new(settings: Settings) -> Outcome<Self> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter("/certs/ca.pem")? {
            roots.add(certificate?)?;
        }
        let mut tls = rustls::ClientConfig::builder_with_provider(settings.provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.into()];
        tls.key_log = Arc::new(rustls::KeyLogFile::new());
        tls.enable_early_data = settings.test == "zerortt";
        let config = ClientConfig::new(Arc::new(QuicClientConfig::with_initial(Arc::new(tls), initial_suite())?));
        Ok(Self { settings, config, connections: 0 })
    }

    /// Fetches files over one connection, all at once.
    async fn fetch_all(&mut self, urls: &[String]) -> Outcome {
        let (authority, _) = split(&urls[0])?;
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
        let server = (host, port.parse()?).to_socket_addrs()?.next().ok_or("the server has no address")?;
        let any: SocketAddr = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse()?;
        let endpoint = Endpoint::client(any)?;
        self.config.transport_config(self.settings.transport(&format!("client-{}", self.connections))?);
        let connecting = endpoint.connect_with(self.config.clone(), server, host)?;
        let early = self.settings.test == "zerortt" && self.connections > 0;
        let connection = if early {
            connecting.into_0rtt().map_err(|_| "the server gave no ticket for early data")?.0
        } else {
            connecting.await?
        };
        self.connections += 1;
        let mut downloads = JoinSet::new();
        for url in urls {
            downloads.spawn(fetch(
                connection.clone(),
                endpoint.clone(),
                split(url)?.1.into(),
                self.settings.test.clone(),
            ));
        }
        while let Some(done) = downloads.join_next().await {
            done??;
        }
        connection.close(0u32.into(), b"");
        // The close is sent at once; the closing period (3 probe timeouts) has nothing left to do.
        tokio::time::timeout(Duration::from_millis(10), endpoint.wait_idle()).await.ok();
        Ok(())
    }
}

async fn fetch(connection: Connection, endpoint: Endpoint, path: String, test: String) -> Outcome {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(format!("GET /{path}\r\n").as_bytes()).await?;
    send.finish()?;
    let name = Path::new(&path).file_name().ok_or("the URL names no file")?;
    let mut file = File::create(PathBuf::from("/downloads").join(name))?;
    let mut special = Some(test);
    while let Some(chunk) = receive.read_chunk(1 << 18, true).await? {
        file.write_all(&chunk.bytes)?;
        match special.take().as_deref() {
            Some("keyupdate") => connection.force_key_update(),
            Some("connectionmigration") => {
                endpoint.rebind(UdpSocket::bind(SocketAddr::new(endpoint.local_addr()?.ip(), 0))?)?
            }
            _ => {}
        }
    }
    Ok(())
}

fn split(url: &str) -> Outcome<(&str, &str)> {
    Ok(url.strip_prefix("https://").and_then(|rest| rest.split_once('/')).ok_or(format!("{url} is not a URL"))?)
}

async fn run(server: bool) -> Outcome {
    let mut settings = Settings {
        test: env::var("TESTCASE").unwrap_or_default(),
        congestion_control: Arc::new(CubicConfig::default()),
    };
    let mut urls = Vec::new();
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--cc" => {
                settings.congestion_control = match arguments.next().as_deref() {
                    Some("cubic") => Arc::new(CubicConfig::default()),
                    Some("newreno") => Arc::new(NewRenoConfig::default()),
                    Some("bbr") => Arc::new(BbrConfig::default()),
                    _ => return Err("--cc is cubic, newreno or bbr".into()),
                }
            }
            url => urls.push(url.to_owned()),
        }
    }
    if server {
        return serve(settings).await;
    }
    let batches: Vec<&[String]> = match settings.test.as_str() {
        "resumption" | "zerortt" if urls.len() > 1 => vec![&urls[..1], &urls[1..]],
        "multiconnect" => urls.chunks(1).collect(),
        _ if urls.is_empty() => return Err("nothing to fetch".into()),
        _ => vec![&urls],
    };
    let mut client = Client::new(settings)?;
    for batch in batches {
        client.fetch_all(batch).await?;
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("no special needs");
    let server = env::var("ROLE").as_deref() == Ok("server");
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            outcome = run(server) => outcome,
            _ = terminate.recv() => if server { Ok(()) } else { Err("terminated".into()) },
        }
    });
    // Drops the connections, which completes their qlogs.
    drop(runtime);
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quinn: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
