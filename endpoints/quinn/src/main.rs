//! quinn as an endpoint: HTTP/0.9 over QUIC, client or server.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use contract::{Batch, Outcome, Task, ALPN, AUTHORITY, CERTIFICATES, KEY, WINDOW};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, Incoming, ServerConfig, TransportConfig};
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer};
use tokio::task::JoinSet;

/// Settings of one connection; each has a qlog of its own.
fn transport(task: &Task, name: &str) -> Outcome<Arc<TransportConfig>> {
    let congestion_control: Arc<dyn ControllerFactory + Send + Sync> = match task.congestion_control.as_str() {
        "newreno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(congestion_control);
    transport.stream_receive_window(WINDOW.into()).send_window(2 * u64::from(WINDOW));
    qlog::start(&mut transport, name)?;
    Ok(Arc::new(transport))
}

/// Releases before 0.11.9 write no qlog, and do not tell the connection ID that is in its name.
#[cfg(not(feature = "qlog"))]
mod qlog {
    pub fn start(_: &mut quinn::TransportConfig, _: &str) -> contract::Outcome {
        Ok(())
    }

    pub fn name(_: &quinn::Incoming) -> String {
        String::new()
    }
}

#[cfg(feature = "qlog")]
mod qlog {
    pub fn start(transport: &mut quinn::TransportConfig, name: &str) -> contract::Outcome {
        if let Some(file) = contract::qlog(name)? {
            let mut config = quinn::QlogConfig::default();
            config.title(Some(name.into())).writer(Box::new(file));
            transport.qlog_stream(config.into_stream());
        }
        Ok(())
    }

    pub fn name(incoming: &quinn::Incoming) -> String {
        format!("server-{}", incoming.orig_dst_cid())
    }
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
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::with_initial(Arc::new(tls), initial_suite())?));
    // Takes IPv4 too.
    let endpoint = Endpoint::server(config.clone(), "[::]:443".parse()?)?;
    loop {
        let incoming = endpoint.accept().await.ok_or("the socket failed")?;
        if task.is("retry") && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        let mut own = config.clone();
        own.transport_config(transport(&task, &qlog::name(&incoming))?);
        tokio::spawn(answer_all(incoming, own, task.is("zerortt")));
    }
}

async fn answer_all(incoming: Incoming, config: ServerConfig, early: bool) -> Outcome {
    let connecting = incoming.accept_with(Arc::new(config))?;
    let connection = if early { connecting.into_0rtt().map_err(|_| "no early data")?.0 } else { connecting.await? };
    loop {
        let (mut send, mut receive) = connection.accept_bi().await?;
        tokio::spawn(async move {
            if let Err(error) = contract::answer(&mut receive, &mut send).await {
                eprintln!("quinn: {error}");
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
    for (number, batch) in task.batches.iter().enumerate() {
        config.transport_config(transport(&task, &format!("client-{number}"))?);
        fetch_batch(&task, &config, batch, task.is("zerortt") && number > 0).await?;
    }
    Ok(())
}

async fn fetch_batch(task: &Task, config: &ClientConfig, batch: &Batch, early: bool) -> Outcome {
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
    connection.close(0u32.into(), b"");
    // The close is sent at once; the closing period (3 probe timeouts) has nothing left to do.
    tokio::time::timeout(Duration::from_millis(10), endpoint.wait_idle()).await.ok();
    Ok(())
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

fn main() {
    contract::main("quinn", &["cubic", "newreno", "bbr"], |task| {
        contract::run_until_terminated(task.server, async move {
            if task.server {
                return serve(task).await;
            }
            fetch_all(task).await
        })
    })
}
