//! neqo's server, which on SIGTERM leaves through the front door: its qlog is complete only then.

use clap::Parser as _;
use tokio::signal::unix::{signal, SignalKind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), neqo_bin::server::Error> {
    let mut end = signal(SignalKind::terminate()).expect("signals can be handled");
    let arguments = neqo_bin::server::Args::parse();
    tokio::select! {
        result = neqo_bin::server::server(arguments) => result,
        _ = end.recv() => Ok(()),
    }
}
