//! HTTP/0.9 over the streams of stacks that run in tokio.

use std::collections::BTreeSet;
use std::env;
use std::future::Future;
use std::io::Write;
use std::sync::LazyLock;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{after, content, create, Batch, Outcome};

/// Paths of the files that are stored.
static ARRIVED: LazyLock<watch::Sender<BTreeSet<String>>> = LazyLock::new(|| watch::Sender::new(BTreeSet::new()));

const LONGEST_REQUEST: u64 = 8192;

/// Drives an endpoint to its end; SIGTERM is a good one for a server only.
pub fn run_until_terminated(server: bool, endpoint: impl Future<Output = Outcome>) -> Outcome {
    // At the end of this function it drops the connections, which completes their qlogs.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            outcome = endpoint => outcome,
            _ = terminate.recv() => if server { Ok(()) } else { Err("terminated".into()) },
        }
    })
}

/// Answers the request on a stream, which the caller resets after an error.
pub async fn answer(receive: &mut (impl AsyncRead + Unpin), send: &mut (impl AsyncWrite + Unpin)) -> Outcome {
    let mut request = Vec::new();
    BufReader::new(receive).take(LONGEST_REQUEST).read_until(b'\n', &mut request).await?;
    send.write_all(&content(&request)?).await?;
    Ok(send.shutdown().await?)
}

/// Waits until a file may be asked for: the one that it comes after is stored.
pub async fn turn(path: &str) -> Outcome {
    let urls: Vec<String> = env::var("REQUESTS")?.split_whitespace().map(str::to_owned).collect();
    let (after, paths) = (after(urls.len())?, Batch::read(&urls)?.paths);
    let before = paths.iter().position(|each| each == path).and_then(|place| after[place].checked_sub(1));
    if let Some(place) = before {
        ARRIVED.subscribe().wait_for(|arrived| arrived.contains(&paths[place])).await?;
    }
    Ok(())
}

/// Stores what comes on a stream; `begun` is called when the first of it is here.
pub async fn store(path: &str, mut receive: impl AsyncRead + Unpin, begun: impl FnOnce() -> Outcome) -> Outcome {
    let (mut file, mut begun, mut part) = (create(path)?, Some(begun), vec![0; 1 << 18]);
    loop {
        match receive.read(&mut part).await? {
            0 => {
                ARRIVED.send_modify(|paths| drop(paths.insert(path.to_owned())));
                return Ok(());
            }
            length => file.write_all(&part[..length])?,
        }
        begun.take().map_or(Ok(()), |begun| begun())?;
    }
}

/// Waits for all downloads; the first that fails ends it.
pub async fn all(mut downloads: JoinSet<Outcome>) -> Outcome {
    while let Some(done) = downloads.join_next().await {
        done??;
    }
    Ok(())
}
