//! MsQuic as an endpoint: HTTP/0.9 over QUIC, client or server.

use std::mem::forget;
use std::net::SocketAddr;
use std::ptr::null_mut;
use std::time::Duration;

use contract::{Batch, Outcome, Streams, Task, ALPN};
use msquic::ffi::{QUIC_PARAM_CONN_RESUMPTION_TICKET, QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT};
use msquic::{
    Addr, Configuration, Connection, ConnectionShutdownFlags, Listener, ListenerEvent, Registration,
    RegistrationConfig, SendFlags, ADDRESS_FAMILY_UNSPEC,
};
use session::Session;
use setup::set;

mod session;
mod setup;

const CLOSING: Duration = Duration::from_millis(20);

fn listen(
    registration: &Registration,
    configuration: &'static Configuration,
    task: &'static Task,
) -> Outcome<Listener> {
    if task.is("retry") {
        // The share of memory that handshakes may take without a Retry.
        set(null_mut(), QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, &[0u16])?;
    }
    let listener = Listener::open(registration, move |_, event| match event {
        ListenerEvent::NewConnection { connection, .. } => {
            Session::new(task, Streams::default(), false).0.attach(&connection)?;
            connection.set_configuration(configuration)
        }
        ListenerEvent::StopComplete { .. } => Ok(()),
    })?;
    // Of no family: takes both IPv4 and IPv6.
    let mut any: Addr = SocketAddr::from(([0; 4], 443)).into();
    any.ipv4.sin_family = ADDRESS_FAMILY_UNSPEC;
    listener.start(&[ALPN.into()], Some(&any))?;
    Ok(listener)
}

/// Fetches files over one connection, all at once; gives the ticket for the next one.
async fn fetch(
    registration: &Registration,
    configuration: &Configuration,
    task: &'static Task,
    batch: &Batch,
    ticket: Option<Vec<u8>>,
) -> Outcome<Option<Vec<u8>>> {
    let ticket_wanted = task.resumes() && ticket.is_none();
    let (session, mut ended) = Session::new(task, Streams::fetching(&batch.paths)?, ticket_wanted);
    // For good: to close it would wait for its end.
    let connection: &Connection = Box::leak(Box::new(Connection::open(registration, |_, _| Ok(()))?));
    session.clone().attach(connection)?;
    if let Some(ticket) = ticket {
        // SAFETY: the handle is valid.
        set(unsafe { connection.as_raw() }, QUIC_PARAM_CONN_RESUMPTION_TICKET, &ticket)?;
        if task.is("zerortt") {
            session.request(connection, SendFlags::ALLOW_0_RTT);
        }
    }
    connection.start(configuration, &batch.host, batch.port)?;
    ended.recv().await.ok_or("the connection is gone")??;
    connection.shutdown(ConnectionShutdownFlags::NONE, 0);
    // The close is sent at once; what follows has nothing left to do.
    tokio::time::sleep(CLOSING).await;
    Ok(session.ticket.get().cloned())
}

fn main() {
    contract::main("msquic", &["cubic", "bbr"], |task| {
        // For good: to close them would wait for connections that nobody closes any more.
        let registration: &Registration = Box::leak(Box::new(Registration::new(&RegistrationConfig::new())?));
        let configuration: &Configuration = Box::leak(Box::new(setup::configure(registration, &task)?));
        let task: &Task = Box::leak(Box::new(task));
        contract::run_until_terminated(task.server, async {
            if task.server {
                forget(listen(registration, configuration, task)?);
                return std::future::pending().await;
            }
            let mut ticket = None;
            for batch in &task.batches {
                ticket = fetch(registration, configuration, task, batch, ticket).await?.filter(|_| task.resumes());
            }
            Ok(())
        })
    })
}
