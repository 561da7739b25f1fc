//! s2n-quic as an endpoint: HTTP/0.9 over QUIC, client or server.

use std::path::Path;
use std::time::Duration;

use contract::{Batch, Outcome, Task, ALPN, AUTHORITY, CERTIFICATES, IDLE, KEY, WINDOW};
use s2n_quic::client::{Client, Connect};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic, Endpoint as CongestionControl};
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome as Decision};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::s2n_tls;
use s2n_quic::{connection, Connection, Server};
use tokio::task::JoinSet;

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
        .with_max_idle_timeout(Duration::from_millis(IDLE.into()))?)
}

async fn serve<C: CongestionControl>(congestion_control: C, retry: bool) -> Outcome {
    let mut tls = s2n_tls::Server::builder()
        .with_application_protocols([ALPN])?
        .with_certificate(Path::new(CERTIFICATES), Path::new(KEY))?;
    if contract::key_log()?.is_some() {
        tls = tls.with_key_logging()?;
    }
    // The address takes IPv4 too.
    let mut server = Server::builder()
        .with_tls(tls.build()?)?
        .with_io("[::]:443")?
        .with_limits(limits()?)?
        .with_endpoint_limits(Retry(retry))?
        .with_congestion_controller(congestion_control)?
        .start()?;
    loop {
        tokio::spawn(answer_all(server.accept().await.ok_or("the socket failed")?));
    }
}

async fn answer_all(mut connection: Connection) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(async move {
            let (mut receive, mut send) = stream.split();
            if let Err(error) = contract::answer(&mut receive, &mut send).await {
                eprintln!("s2n-quic: {error}");
                send.reset(1u32.into()).ok();
            }
        });
    }
}

async fn fetch_all<C: CongestionControl>(congestion_control: C, batch: &Batch) -> Outcome {
    let (server, any) = batch.addresses()?;
    let mut tls = s2n_tls::Client::builder()
        .with_application_protocols([ALPN])?
        .with_empty_trust_store()?
        .with_certificate(Path::new(AUTHORITY))?;
    if contract::key_log()?.is_some() {
        tls = tls.with_key_logging()?;
    }
    let mut client = Client::builder()
        .with_tls(tls.build()?)?
        .with_io(any)?
        .with_limits(limits()?)?
        .with_congestion_controller(congestion_control)?
        .start()?;
    let connection = client.connect(Connect::new(server).with_server_name(batch.host.as_str())).await?;
    let mut downloads = JoinSet::new();
    for path in &batch.paths {
        downloads.spawn(fetch(connection.handle(), path.clone()));
    }
    contract::all(downloads).await?;
    connection.close(0u32.into());
    // The close is sent at once; the closing period (3 probe timeouts) has nothing left to do.
    tokio::time::timeout(Duration::from_millis(10), client.wait_idle()).await.ok();
    Ok(())
}

async fn fetch(mut connection: connection::Handle, path: String) -> Outcome {
    contract::turn(&path).await?;
    let mut stream = connection.open_bidirectional_stream().await?;
    stream.send(contract::request(&path).into()).await?;
    stream.finish()?;
    contract::store(&path, stream, || Ok(())).await
}

async fn run<C: CongestionControl>(congestion_control: fn() -> C, task: &Task) -> Outcome {
    if task.server {
        return serve(congestion_control(), task.is("retry")).await;
    }
    for batch in &task.batches {
        fetch_all(congestion_control(), batch).await?;
    }
    Ok(())
}

fn main() {
    contract::main("s2n-quic", &["cubic", "bbr"], |task| {
        contract::run_until_terminated(task.server, async {
            match task.congestion_control.as_str() {
                "bbr" => run(Bbr::default, &task).await,
                _ => run(Cubic::default, &task).await,
            }
        })
    })
}
