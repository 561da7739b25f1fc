//! MsQuic as an endpoint: HTTP/0.9 over QUIC, client or server. The stack calls back on threads of its own, with one
//! event of a connection and its streams at a time; the last one of a handle, ShutdownComplete, is where it is closed.

use std::ptr::{from_ref, null, null_mut};
use std::{future::pending, io::Write, mem::forget, net::SocketAddr, time::Duration};

use contract::{Outcome, Streams, Task, ALPN, AUTHORITY, CERTIFICATES, IDLE, KEY, WINDOW};
use msquic::ffi::{HQUIC, QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, QUIC_TLS_SECRETS};
use msquic::{AllowedCipherSuiteFlags as Ciphers, ConnectionEvent::*, ServerResumptionLevel as Level, *};
use tokio::sync::{mpsc, oneshot};

type Keep = Option<oneshot::Sender<Vec<u8>>>;
type Done = Option<mpsc::UnboundedSender<()>>;
const FORCE_KEY_UPDATE: u32 = 0x8500_0000; // from the stack's private header; refused before the handshake is confirmed
/// What follows in QUIC_TLS_SECRETS upon the length of secrets, a byte of flags and the client's random, 64 bytes each.
const SECRETS: &str = "CLIENT_EARLY_TRAFFIC_SECRET CLIENT_HANDSHAKE_TRAFFIC_SECRET SERVER_HANDSHAKE_TRAFFIC_SECRET \
                       CLIENT_TRAFFIC_SECRET_0 SERVER_TRAFFIC_SECRET_0";

/// Appends the secrets of a connection whose handshake is done to the key log.
fn log_secrets(all: &[u8]) -> Outcome {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (random, length) = (hex(&all[2..34]), all[0].into());
    let known = SECRETS.split(' ').zip(all[34..].chunks(64)).filter(|(_, secret)| *secret != [0; 64]);
    let lines: String = known.map(|(label, secret)| format!("{label} {random} {}\n", hex(&secret[..length]))).collect();
    Ok(contract::key_log()?.map_or(Ok(()), |mut file| file.write_all(lines.as_bytes()))?)
}

/// Sets a parameter of the library (null), or of a handle's connection.
fn set<T: ?Sized>(handle: HQUIC, parameter: u32, value: &T) -> Result<(), Status> {
    // SAFETY: the value is as long as said.
    unsafe { Api::set_param(handle, parameter, size_of_val(value) as u32, from_ref(value).cast()) }
}

fn configure(registration: &Registration, task: &Task) -> Outcome<Configuration> {
    let mut settings = Settings::new()
        .set_IdleTimeoutMs(IDLE.into())
        .set_StreamRecvWindowDefault(WINDOW)
        .set_ConnFlowControlWindow(2 * WINDOW)
        .set_PeerBidiStreamCount(if task.server { 100 } else { 0 })
        .set_CongestionControlAlgorithm((task.congestion_control == "bbr").into())
        .set_ServerResumptionLevel(if task.is("zerortt") { Level::ResumeAndZerortt } else { Level::ResumeOnly });
    let mut credential = CredentialConfig::new_client().set_ca_certificate_file(AUTHORITY.into());
    if task.server {
        let file = CertificateFile::new(KEY.into(), CERTIFICATES.into());
        credential = CredentialConfig::new().set_credential(Credential::CertificateFile(file));
    }
    match task.test.as_str() {
        "chacha20" => credential = credential.set_allowed_cipher_suites(Ciphers::CHACHA20_POLY1305_SHA256),
        "ecn" => settings = settings.set_EcnEnabled(),
        "retry" => set(null_mut(), QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, &0u16)?, // Retry from 0 % of memory in use
        _ => {}
    }
    set(null_mut(), PARAM_GLOBAL_SETTINGS, settings.as_ffi_ref())?; // for streams opened before their connection starts
    let configuration = Configuration::open(registration, &[ALPN.into()], Some(&settings))?;
    Ok(configuration.load_credential(&credential).map(|()| configuration)?)
}

/// Lets a connection call back; `keep` gets a ticket for the next one.
fn attach(connection: &Connection, task: &'static Task, mut keep: Keep) -> Result<(), Status> {
    let secrets: &[u8] = Box::leak(Box::new([0u8; size_of::<QUIC_TLS_SECRETS>()])); // for the stack, at any time
    connection.set_callback_handler(move |connection, event| {
        match event {
            Connected { .. } => {
                let send_ticket = Api::get_ffi().ConnectionSendResumptionTicket.filter(|_| task.server);
                send_ticket.map(|send| unsafe { send(connection.as_raw(), SEND_RESUMPTION_FLAG_FINAL, 0, null_mut()) });
                log_secrets(secrets).unwrap_or_else(|error| eprintln!("msquic: {error}"));
            }
            PeerStreamStarted { stream, .. } => stream.set_callback_handler(talk(task, Streams::default(), None)),
            ResumptionTicketReceived { resumption_ticket: new } => drop(keep.take().map(|keep| keep.send(new.into()))),
            ShutdownInitiatedByTransport { .. } | ShutdownInitiatedByPeer { .. } => eprintln!("msquic: {event:?}"),
            ShutdownComplete { .. } if task.server => drop(unsafe { Connection::from_raw(connection.as_raw()) }),
            ShutdownComplete { .. } => keep = None,
            _ => {}
        }
        Ok(())
    });
    set(unsafe { connection.as_raw() }, PARAM_CONN_TLS_SECRETS, secrets)
}

/// What one end of a stream, the only one of `streams`, does when it is called back; `done` hears when all has come.
fn talk(task: &Task, mut streams: Streams, done: Done) -> impl FnMut(StreamRef, StreamEvent) -> Result<(), Status> {
    let early = if task.is("zerortt") { SendFlags::ALLOW_0_RTT } else { SendFlags::NONE };
    let (mut update, mut sent, mut buffer) = (task.is("keyupdate"), Vec::new(), [BufferRef::from("")]);
    move |stream, event| {
        match event {
            StreamEvent::Receive { buffers, flags, .. } => {
                update = update && set(unsafe { stream.as_raw() }, FORCE_KEY_UPDATE, &()).is_err();
                let part = buffers.iter().map(BufferRef::as_bytes).collect::<Vec<_>>().concat();
                let ended = flags.contains(ReceiveFlags::FIN);
                match streams.receive(0, &part, ended).inspect_err(|error| eprintln!("msquic: {error}")) {
                    Ok(true) if streams.fetched() => drop(done.as_ref().map(|done| done.send(()))),
                    Ok(true) => {}
                    _ => stream.shutdown(StreamShutdownFlags::ABORT, 1)?,
                }
            }
            StreamEvent::ShutdownComplete { .. } => return Ok(drop(unsafe { Stream::from_raw(stream.as_raw()) })),
            _ => {}
        }
        streams.send(|_, content| {
            sent.is_empty().then(|| sent = content.to_vec())?; // once, and it stays here until the last event
            buffer = [sent.as_slice().into()];
            unsafe { stream.send(&buffer, early | SendFlags::FIN, null()) }.ok().map(|()| sent.len())
        });
        Ok(())
    }
}

async fn run(task: &'static Task) -> Outcome {
    // For good: the stack may call back at any time, and to close them would wait for connections' ends.
    let registration: &Registration = Box::leak(Box::new(Registration::new(&RegistrationConfig::new())?));
    let configuration: &Configuration = Box::leak(Box::new(configure(registration, task)?));
    if task.server {
        let listener = Listener::open(registration, |_, event| {
            let ListenerEvent::NewConnection { connection, .. } = event else { return Ok(()) };
            attach(&connection, task, None)?;
            connection.set_configuration(configuration)
        })?;
        let mut any: Addr = SocketAddr::from(([0; 4], 443)).into();
        any.ipv4.sin_family = ADDRESS_FAMILY_UNSPEC; // takes both IPv4 and IPv6
        forget(listener.start(&[ALPN.into()], Some(&any)).map(|()| listener)?);
        return pending().await;
    }
    let mut ticket: Option<Vec<u8>> = None;
    for batch in &task.batches {
        let connection = Box::leak(Box::new(Connection::open(registration, |_, _| Ok(()))?));
        let ((keep, kept), (done, mut files)) = (oneshot::channel(), mpsc::unbounded_channel());
        attach(connection, task, Some(keep))?;
        ticket.as_deref().map_or(Ok(()), |it| set(unsafe { connection.as_raw() }, PARAM_CONN_RESUMPTION_TICKET, it))?;
        for path in batch.paths.chunks(1) {
            let callback = talk(task, Streams::fetching(path)?, Some(done.clone()));
            let stream = Stream::open(connection, StreamOpenFlags::NONE, callback)?;
            forget(stream.start(StreamStartFlags::NONE).map(|()| stream)?);
        }
        drop(done);
        connection.start(configuration, &batch.host, batch.port)?;
        for _ in &batch.paths {
            files.recv().await.ok_or("a stream was reset, or the connection is gone")?;
        }
        ticket = if task.resumes() && ticket.is_none() { Some(kept.await.map_err(|_| "no ticket")?) } else { None };
        connection.shutdown(ConnectionShutdownFlags::NONE, 0);
        tokio::time::sleep(Duration::from_millis(20)).await; // The close is sent at once; nothing is left to do.
    }
    Ok(())
}

fn main() {
    contract::main("msquic", &["cubic", "bbr"], |task| {
        contract::run_until_terminated(task.server, run(Box::leak(Box::new(task))))
    })
}
