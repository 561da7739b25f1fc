//! s2n-quic as an endpoint: HTTP/0.9 over QUIC, client or server, chosen by ROLE and TESTCASE.

use std::env;
use std::fs::File;
use std::io::{Read, Write};
use std::net::ToSocketAddrs;
use std::path::{Component, Path};
use std::time::Duration;

use bytes::Bytes;
use s2n_quic::client::{Client, Connect};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic, Endpoint as CongestionControl};
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome as Decision};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::s2n_tls;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{connection, Connection, Server};
use tokio::signal::unix::{signal, SignalKind};
use tokio::task::JoinSet;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const ALPN: [&str; 1] = ["hq-interop"];
/// Bytes of flow control for a stream and a connection, and of what the server keeps for retransmission: twice what
/// 100 Mbit/s need over a round trip of 600 ms. The stack's defaults are 3.75 MB and 4 MiB.
const WINDOW: u32 = 16 << 20;
const STALE: Duration = Duration::from_secs(30);

/// Asks for a Retry from whoever has no token yet, or from nobody.
struct Retry(bool);

impl Limiter for Retry {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt) -> Decision {
        if self.0 {
            Decision::retry()
        } else {
            Decision::allow()
        }
    }
}

fn limits() -> Outcome<Limits> {
    Ok(Limits::new()
        .with_data_window(WINDOW.into())?
        .with_bidirectional_local_data_window(WINDOW.into())?
        .with_bidirectional_remote_data_window(WINDOW.into())?
        .with_max_send_buffer_size(WINDOW)?
        .with_max_idle_timeout(STALE)?)
}

fn keys_wanted() -> bool {
    env::var_os("SSLKEYLOGFILE").is_some_and(|path| !path.is_empty())
}

async fn serve<C: CongestionControl>(congestion_control: C, test: &str) -> Outcome {
    let mut tls = s2n_tls::Server::builder()
        .with_application_protocols(ALPN)?
        .with_certificate(Path::new("/certs/cert.pem"), Path::new("/certs/priv.key"))?;
    if keys_wanted() {
        tls = tls.with_key_logging()?;
    }
    // The address takes IPv4 too.
    let mut server = Server::builder()
        .with_tls(tls.build()?)?
        .with_io("[::]:443")?
        .with_limits(limits()?)?
        .with_endpoint_limits(Retry(test == "retry"))?
        .with_congestion_controller(congestion_control)?
        .start()?;
    loop {
        tokio::spawn(answer_all(server.accept().await.ok_or("the socket failed")?));
    }
}

async fn answer_all(mut connection: Connection) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(async move {
            if let Err(error) = answer(stream).await {
                eprintln!("s2n-quic: {error}");
            }
        });
    }
}

async fn answer(mut stream: BidirectionalStream) -> Outcome {
    let mut request = Vec::new();
    while !request.ends_with(b"\n") {
        match stream.receive().await? {
            Some(part) if request.len() < 8192 => request.extend_from_slice(&part),
            _ => break,
        }
    }
    let request = String::from_utf8(request)?;
    let path = request.trim_end().strip_prefix("GET /").ok_or("not a GET request")?;
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let mut file = match File::open(Path::new("/www").join(path)) {
        Ok(file) if inside => file,
        _ => return Ok(stream.reset(1u32.into())?),
    };
    loop {
        let mut part = vec![0; 1 << 17];
        match file.read(&mut part)? {
            0 => return Ok(stream.close().await?),
            length => stream.send(Bytes::from(part).slice(..length)).await?,
        }
    }
}

/// Fetches files over one connection, all at once.
async fn fetch_all<C: CongestionControl>(congestion_control: C, urls: &[String]) -> Outcome {
    let (authority, _) = split(&urls[0])?;
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
    let address = (host, port.parse()?).to_socket_addrs()?.next().ok_or("the server has no address")?;
    let mut tls = s2n_tls::Client::builder()
        .with_application_protocols(ALPN)?
        .with_empty_trust_store()?
        .with_certificate(Path::new("/certs/ca.pem"))?;
    if keys_wanted() {
        tls = tls.with_key_logging()?;
    }
    let mut client = Client::builder()
        .with_tls(tls.build()?)?
        .with_io(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?
        .with_limits(limits()?)?
        .with_congestion_controller(congestion_control)?
        .start()?;
    let connection = client.connect(Connect::new(address).with_server_name(host)).await?;
    let mut downloads = JoinSet::new();
    for url in urls {
        downloads.spawn(fetch(connection.handle(), split(url)?.1.into()));
    }
    while let Some(done) = downloads.join_next().await {
        done??;
    }
    connection.close(0u32.into());
    // The close is sent at once; the closing period (3 probe timeouts) has nothing left to do.
    tokio::time::timeout(Duration::from_millis(10), client.wait_idle()).await.ok();
    Ok(())
}

async fn fetch(mut connection: connection::Handle, path: String) -> Outcome {
    let mut stream = connection.open_bidirectional_stream().await?;
    stream.send(Bytes::from(format!("GET /{path}\r\n"))).await?;
    stream.finish()?;
    let name = Path::new(&path).file_name().ok_or("the URL names no file")?;
    let mut file = File::create(Path::new("/downloads").join(name))?;
    while let Some(part) = stream.receive().await? {
        file.write_all(&part)?;
    }
    Ok(())
}

fn split(url: &str) -> Outcome<(&str, &str)> {
    Ok(url.strip_prefix("https://").and_then(|rest| rest.split_once('/')).ok_or(format!("{url} is not a URL"))?)
}

async fn run<C: CongestionControl>(congestion_control: fn() -> C, urls: &[String]) -> Outcome {
    let test = env::var("TESTCASE").unwrap_or_default();
    let mut terminate = signal(SignalKind::terminate())?;
    if env::var("ROLE").as_deref() == Ok("server") {
        return tokio::select! {
            outcome = serve(congestion_control(), &test) => outcome,
            _ = terminate.recv() => Ok(()),
        };
    }
    // As process 1 it would ignore the signal.
    tokio::spawn(async move {
        terminate.recv().await;
        std::process::exit(1);
    });
    if urls.is_empty() {
        return Err("nothing to fetch".into());
    }
    for batch in urls.chunks(if test == "multiconnect" { 1 } else { urls.len() }) {
        fetch_all(congestion_control(), batch).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let mut congestion_control = "cubic".to_owned();
    if let Some(at) = arguments.iter().position(|argument| argument == "--cc") {
        arguments.remove(at);
        congestion_control = if at < arguments.len() { arguments.remove(at) } else { String::new() };
    }
    let outcome = match congestion_control.as_str() {
        "cubic" => run(Cubic::default, &arguments).await,
        "bbr" => run(Bbr::default, &arguments).await,
        _ => Err("--cc is cubic or bbr".into()),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("s2n-quic: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
