//! noq as an endpoint: HTTP/0.9 over QUIC, client or server.

use std::env;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use contract::{Batch, Outcome, Task, ALPN, AUTHORITY, CERTIFICATES, KEY, WINDOW};
#[cfg(feature = "bbr3")]
use noq::congestion::Bbr3Config;
use noq::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{
    AckFrequencyConfig, ClientConfig, Connection, Endpoint, Incoming, PathId, ServerConfig, TransportConfig, VarInt,
};
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer};
use tokio::task::JoinSet;

/// After how many packets the peer is asked to acknowledge (ACK frequency); `main` takes it from the arguments.
const ACK_FREQUENCY: &str = "ACK_FREQUENCY";

/// A client that only acknowledges has nothing in flight: without this it would never learn that its NAT changed the
/// mapping, since its server then sends to the old one.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Settings of connections. A resumed one starts with the round-trip time of the one before (RFC 9002, section 6.2.2): noq
/// paces from its first packet, and would spread early data over the 333 ms that it otherwise assumes.
fn transport(task: &Task, round_trip: Option<Duration>) -> Outcome<Arc<TransportConfig>> {
    let congestion_control: Arc<dyn ControllerFactory + Send + Sync> = match task.congestion_control.as_str() {
        "newreno" => Arc::new(NewRenoConfig::default()),
        #[cfg(feature = "bbr3")]
        "bbr3" => Arc::new(Bbr3Config::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(congestion_control);
    transport.stream_receive_window(WINDOW.into()).send_window(2 * u64::from(WINDOW));
    if !task.server {
        transport.keep_alive_interval(Some(KEEP_ALIVE));
    }
    if let Some(round_trip) = round_trip {
        transport.initial_rtt(round_trip);
    }
    if let Ok(packets) = env::var(ACK_FREQUENCY) {
        let mut config = AckFrequencyConfig::default();
        // The threshold is the number of packets that need no acknowledgement at once.
        config.ack_eliciting_threshold(VarInt::from_u32(packets.parse::<u32>()?.saturating_sub(1)));
        transport.ack_frequency_config(Some(config));
    }
    if let Some(folder) = env::var("QLOGDIR").ok().filter(|folder| !folder.is_empty()) {
        transport.qlog_from_path(folder, if task.server { "server" } else { "client" });
    }
    Ok(Arc::new(transport))
}

/// ChaCha20 can be the only suite offered; quinn takes the suite of Initial packets from elsewhere.
fn provider(task: &Task) -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    if task.is("chacha20") {
        provider.cipher_suites = vec![ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    }
    Arc::new(provider)
}

fn initial_suite() -> rustls::quic::Suite {
    ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().and_then(|suite| suite.quic_suite()).expect("has QUIC keys")
}

async fn serve(task: Task) -> Outcome {
    let certificates = CertificateDer::pem_file_iter(CERTIFICATES)?.collect::<Result<Vec<_>, _>>()?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(&task))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(KEY)?)?;
    tls.alpn_protocols = vec![ALPN.into()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    if task.is("zerortt") {
        tls.max_early_data_size = u32::MAX;
    }
    let mut config =
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::with_initial(Arc::new(tls), initial_suite())?));
    config.transport_config(transport(&task, None)?);
    // Takes IPv4 too.
    let endpoint = Endpoint::server(config.clone(), "[::]:443".parse()?)?;
    loop {
        let incoming = endpoint.accept().await.ok_or("the socket failed")?;
        if task.is("retry") && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        tokio::spawn(answer_all(incoming, task.is("zerortt")));
    }
}

async fn answer_all(incoming: Incoming, early: bool) -> Outcome {
    let connecting = incoming.accept()?;
    let connection = if early { connecting.into_0rtt().map_err(|_| "no early data")?.0 } else { connecting.await? };
    loop {
        let (mut send, mut receive) = connection.accept_bi().await?;
        tokio::spawn(async move {
            if let Err(error) = contract::answer(&mut receive, &mut send).await {
                eprintln!("noq: {error}");
                send.reset(1u32.into()).ok();
            }
        });
    }
}

async fn fetch_all(task: Task) -> Outcome {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(AUTHORITY)? {
        roots.add(certificate?)?;
    }
    let mut tls = rustls::ClientConfig::builder_with_provider(provider(&task))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.into()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    tls.enable_early_data = task.is("zerortt");
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::with_initial(Arc::new(tls), initial_suite())?));
    let mut round_trip = None;
    for (number, batch) in task.batches.iter().enumerate() {
        config.transport_config(transport(&task, round_trip)?);
        let early = task.is("zerortt") && number > 0;
        round_trip = fetch_batch(&task, &config, batch, early).await?.filter(|_| task.resumes());
    }
    Ok(())
}

/// The round-trip time of the connection, if it is known.
async fn fetch_batch(task: &Task, config: &ClientConfig, batch: &Batch, early: bool) -> Outcome<Option<Duration>> {
    let (server, any) = batch.addresses()?;
    let endpoint = Endpoint::client(any)?;
    let connecting = endpoint.connect_with(config.clone(), server, &batch.host)?;
    let connection = if early {
        connecting.into_0rtt().map_err(|_| "the server gave no ticket for early data")?.0
    } else {
        connecting.await?
    };
    let mut downloads = JoinSet::new();
    for path in &batch.paths {
        downloads.spawn(fetch(connection.clone(), endpoint.clone(), path.clone(), task.test.clone()));
    }
    contract::all(downloads).await?;
    let round_trip = connection.rtt(PathId::ZERO);
    connection.close(0u32.into(), b"");
    // The close is sent at once; the closing period (3 probe timeouts) has nothing left to do.
    tokio::time::timeout(Duration::from_millis(10), endpoint.wait_idle()).await.ok();
    Ok(round_trip)
}

async fn fetch(connection: Connection, endpoint: Endpoint, path: String, test: String) -> Outcome {
    contract::turn(&path).await?;
    let (mut send, receive) = connection.open_bi().await?;
    send.write_all(&contract::request(&path)).await?;
    send.finish()?;
    let begun = || match test.as_str() {
        "keyupdate" => Ok(connection.force_key_update()),
        "connectionmigration" => {
            Ok(endpoint.rebind(UdpSocket::bind(SocketAddr::new(endpoint.local_addr()?.ip(), 0))?)?)
        }
        _ => Ok(()),
    };
    contract::store(&path, receive, begun).await
}

/// Starts the program again without the words `--ack-frequency N`, which are then in the environment.
fn take_ack_frequency() -> Outcome {
    let mut words: Vec<String> = env::args().skip(1).collect();
    if let Some(place) = words.iter().position(|word| word == "--ack-frequency") {
        let packets = words.get(place + 1).cloned().unwrap_or_default();
        packets.parse::<u32>().map_err(|_| "--ack-frequency needs a number of packets")?;
        words.drain(place..place + 2);
        return Err(Command::new(env::current_exe()?).args(words).env(ACK_FREQUENCY, packets).exec().into());
    }
    Ok(())
}

fn main() {
    if let Err(error) = take_ack_frequency() {
        eprintln!("noq: {error}");
        std::process::exit(1);
    }
    contract::main("noq", &["cubic", "newreno", "bbr3"], |task| {
        contract::run_until_terminated(task.server, async move {
            if task.server {
                return serve(task).await;
            }
            fetch_all(task).await
        })
    })
}
