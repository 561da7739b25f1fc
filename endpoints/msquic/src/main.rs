//! MsQuic as an endpoint: HTTP/0.9 over QUIC, client or server, chosen by ROLE and TESTCASE.

use std::env;
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Component, Path};
use std::ptr::null_mut;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::Duration;

use msquic::ffi::*;
use msquic::{
    Addr, AllowedCipherSuiteFlags, Api, BufferRef, CertificateFile, Configuration, Connection, ConnectionEvent,
    ConnectionRef, ConnectionShutdownFlags, Credential, CredentialConfig, Listener, ListenerEvent, Registration,
    RegistrationConfig, SendFlags, Status, Stream, StreamEvent, StreamOpenFlags, StreamRef, StreamShutdownFlags,
    StreamStartFlags, ADDRESS_FAMILY_UNSPEC,
};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Bytes of flow control, twice what 100 Mbit/s need over a round trip of 600 ms; the stack's default is 64 KiB, which
/// grows only while the reader keeps up.
const WINDOW: u32 = 16 << 20;
/// How long a connection's other end may be silent, in milliseconds.
const IDLE: u64 = 30_000;
const TICKET: Duration = Duration::from_secs(10);
const CLOSING: Duration = Duration::from_millis(20);
/// QUIC_PARAM_CONN_FORCE_KEY_UPDATE, which only the stack's private header names.
const FORCE_KEY_UPDATE: u32 = 0x8500_0000;

/// What the callbacks of a connection tell the main thread.
enum News {
    Connected,
    /// Some data came, so that the handshake is confirmed by now or soon.
    Received,
    Ticket(Vec<u8>),
    Fetched(Result<(), String>),
    Closed(String),
}

fn configure(registration: &Registration, test: &str, bbr: bool, server: bool) -> Outcome<Configuration> {
    let configuration = Configuration::open(registration, &[BufferRef::from("hq-interop")], None)?;
    // SAFETY: all zero is a valid value, in which nothing is set.
    let mut settings: QUIC_SETTINGS = unsafe { std::mem::zeroed() };
    settings.IdleTimeoutMs = IDLE;
    settings.StreamRecvWindowDefault = WINDOW;
    settings.ConnFlowControlWindow = 2 * WINDOW;
    settings.PeerBidiStreamCount = if server { 100 } else { 0 };
    settings.CongestionControlAlgorithm = bbr.into();
    settings.set_EcnEnabled((test == "ecn").into());
    settings.set_ServerResumptionLevel(if test == "zerortt" { 2 } else { 1 });
    // A file is in memory already, and is sent from there.
    settings.set_SendBufferingEnabled(0);
    // SAFETY: this is the union's member that the bit fields are for.
    let is_set = unsafe { &mut settings.__bindgen_anon_1.IsSet };
    is_set.set_IdleTimeoutMs(1);
    is_set.set_StreamRecvWindowDefault(1);
    is_set.set_ConnFlowControlWindow(1);
    is_set.set_PeerBidiStreamCount(1);
    is_set.set_CongestionControlAlgorithm(1);
    is_set.set_EcnEnabled(1);
    is_set.set_ServerResumptionLevel(server.into());
    is_set.set_SendBufferingEnabled(1);
    set(unsafe { configuration.as_raw() }, QUIC_PARAM_CONFIGURATION_SETTINGS, &settings)?;
    let mut credential = if server {
        let file = CertificateFile::new("/certs/priv.key".into(), "/certs/cert.pem".into());
        CredentialConfig::new().set_credential(Credential::CertificateFile(file))
    } else {
        CredentialConfig::new_client().set_ca_certificate_file("/certs/ca.pem".into())
    };
    if test == "chacha20" {
        credential = credential.set_allowed_cipher_suites(AllowedCipherSuiteFlags::CHACHA20_POLY1305_SHA256);
    }
    configuration.load_credential(&credential)?;
    Ok(configuration)
}

fn set<T>(handle: HQUIC, parameter: u32, value: &T) -> Result<(), Status> {
    let value: *const T = value;
    // SAFETY: the value is as long as said.
    unsafe { Api::set_param(handle, parameter, size_of::<T>() as u32, value.cast()) }
}

/// Lets the stack fill in a connection's secrets; they stay valid for good, since it may do so at any time.
fn keep_secrets(connection: &Connection) -> Result<Option<&'static QUIC_TLS_SECRETS>, Status> {
    if env::var_os("SSLKEYLOGFILE").map_or(true, |path| path.is_empty()) {
        return Ok(None);
    }
    // SAFETY: all zero is a valid value.
    let secrets: &'static mut QUIC_TLS_SECRETS = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
    // SAFETY: the handle is valid, and the pointer stays so.
    unsafe {
        let (pointer, length) = (std::ptr::from_mut(secrets), size_of::<QUIC_TLS_SECRETS>() as u32);
        Api::set_param(connection.as_raw(), QUIC_PARAM_CONN_TLS_SECRETS, length, pointer.cast())?;
        Ok(Some(&*pointer))
    }
}

fn log_secrets(secrets: &QUIC_TLS_SECRETS) -> Outcome {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (random, length) = (hex(&secrets.ClientRandom), secrets.SecretLength.into());
    let mut lines = String::new();
    for (is_set, label, secret) in [
        (secrets.IsSet.ClientEarlyTrafficSecret(), "CLIENT_EARLY_TRAFFIC_SECRET", &secrets.ClientEarlyTrafficSecret),
        (1, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", &secrets.ClientHandshakeTrafficSecret),
        (1, "SERVER_HANDSHAKE_TRAFFIC_SECRET", &secrets.ServerHandshakeTrafficSecret),
        (1, "CLIENT_TRAFFIC_SECRET_0", &secrets.ClientTrafficSecret0),
        (1, "SERVER_TRAFFIC_SECRET_0", &secrets.ServerTrafficSecret0),
    ] {
        if is_set == 1 {
            lines += &format!("{label} {random} {}\n", hex(&secret[..length]));
        }
    }
    let path = env::var("SSLKEYLOGFILE")?;
    Ok(OpenOptions::new().append(true).create(true).open(path)?.write_all(lines.as_bytes())?)
}

/// Sends memory and the end of the stream; the memory is given back when all of it was acknowledged.
fn send(stream: &Stream, content: *const u8, length: usize, flags: SendFlags) -> Result<(), Status> {
    let buffer = Box::leak(Box::new([BufferRef(QUIC_BUFFER { Length: length as u32, Buffer: content.cast_mut() })]));
    // SAFETY: buffer and memory live until `sent` gets the buffer.
    unsafe { stream.send(buffer, flags | SendFlags::FIN, buffer.as_ptr().cast()) }
}

fn sent(context: *const c_void) {
    // SAFETY: the context is what `send` leaked, its memory is mapped.
    unsafe {
        let buffer = Box::from_raw(context.cast::<[BufferRef; 1]>().cast_mut());
        libc::munmap(buffer[0].0.Buffer.cast(), buffer[0].0.Length as usize);
    }
}

/// A file, or as much room where there is none, in memory of its own.
fn map(length: usize, file: Option<&File>) -> *mut u8 {
    let (kind, descriptor) = file.map_or((libc::MAP_ANONYMOUS, -1), |file| (0, file.as_raw_fd()));
    let access = libc::PROT_READ | if file.is_none() { libc::PROT_WRITE } else { 0 };
    // SAFETY: the kernel chooses where.
    unsafe { libc::mmap(null_mut(), length.max(1), access, libc::MAP_PRIVATE | kind, descriptor, 0).cast() }
}

fn answer(stream: &Stream, request: &[u8]) -> Outcome {
    let request = std::str::from_utf8(request)?;
    let path = request.trim_end().strip_prefix("GET /").ok_or("not a GET request")?;
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let file = File::open(Path::new("/www").join(path)).ok().filter(|_| inside).ok_or("no such file")?;
    let length = file.metadata()?.len() as usize;
    Ok(send(stream, map(length, Some(&file)), length, SendFlags::NONE)?)
}

fn serve_stream(mut request: Vec<u8>, mut answered: bool) -> impl FnMut(StreamRef, StreamEvent) -> Result<(), Status> {
    move |stream, event| {
        match event {
            StreamEvent::Receive { buffers, .. } => {
                buffers.iter().for_each(|buffer| request.extend_from_slice(buffer.as_bytes()));
                if request.ends_with(b"\n") && !std::mem::replace(&mut answered, true) {
                    if let Err(error) = answer(&stream, &request) {
                        eprintln!("msquic: {error}");
                        stream.shutdown(StreamShutdownFlags::ABORT, 1).ok();
                    }
                }
            }
            StreamEvent::SendComplete { client_context, .. } => sent(client_context),
            // SAFETY: the stream's last event; nobody else closes it.
            StreamEvent::ShutdownComplete { .. } => drop(unsafe { Stream::from_raw(stream.as_raw()) }),
            _ => {}
        }
        Ok(())
    }
}

fn accept(connection: &Connection, configuration: &Configuration, tickets: bool) -> Result<(), Status> {
    let secrets = keep_secrets(connection)?;
    connection.set_callback_handler(move |connection: ConnectionRef, event: ConnectionEvent| {
        match event {
            ConnectionEvent::Connected { .. } => {
                if let Some(Err(error)) = secrets.map(log_secrets) {
                    eprintln!("msquic: {error}");
                }
                if let (true, Some(send_ticket)) = (tickets, Api::get_ffi().ConnectionSendResumptionTicket) {
                    // SAFETY: the handle is valid, and no data goes with the ticket.
                    unsafe { send_ticket(connection.as_raw(), 1, 0, null_mut()) };
                }
            }
            ConnectionEvent::PeerStreamStarted { stream, .. } => {
                stream.set_callback_handler(serve_stream(Vec::new(), false));
            }
            // SAFETY: the connection's last event; nobody else closes it.
            ConnectionEvent::ShutdownComplete { .. } => drop(unsafe { Connection::from_raw(connection.as_raw()) }),
            _ => {}
        }
        Ok(())
    });
    connection.set_configuration(configuration)
}

fn serve(registration: &Registration, test: &str, bbr: bool) -> Outcome {
    let configuration = configure(registration, test, bbr, true)?;
    if test == "retry" {
        // The share of memory that handshakes may take without a Retry.
        set(null_mut(), QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, &0u16)?;
    }
    let tickets = matches!(test, "resumption" | "zerortt");
    let listener = Listener::open(registration, move |_, event| match event {
        ListenerEvent::NewConnection { connection, .. } => accept(&connection, &configuration, tickets),
        ListenerEvent::StopComplete { .. } => Ok(()),
    })?;
    // Of no family: takes both IPv4 and IPv6.
    let mut any: Addr = std::net::SocketAddr::from(([0; 4], 443)).into();
    any.ipv4.sin_family = ADDRESS_FAMILY_UNSPEC;
    listener.start(&[BufferRef::from("hq-interop")], Some(&any))?;
    wait_for_term();
    Ok(())
}

fn wait_for_term() {
    let mut caught = 0;
    // SAFETY: the set and the number are live. All threads have SIGTERM blocked, see `main`.
    unsafe { libc::sigwait(&term(), &mut caught) };
}

fn term() -> libc::sigset_t {
    // SAFETY: the set is a live local, filled in by the first call.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGTERM);
        signals
    }
}

fn fetch_stream(path: String, news: Sender<News>) -> impl FnMut(StreamRef, StreamEvent) -> Result<(), Status> {
    let mut file = None;
    let mut outcome = Err(format!("/{path}: the connection ended before the file did"));
    let mut store = move |buffers: &[BufferRef]| -> Outcome {
        if file.is_none() {
            file = Some(File::create(Path::new("/downloads").join(Path::new(&path).file_name().unwrap_or_default()))?);
        }
        buffers.iter().try_for_each(|part| file.as_mut().map_or(Ok(()), |file| file.write_all(part.as_bytes())))?;
        Ok(())
    };
    move |_, event| {
        match event {
            StreamEvent::Receive { buffers, .. } => {
                let stored = store(buffers).map_err(|error| error.to_string());
                news.send(stored.map_or_else(|error| News::Fetched(Err(error)), |()| News::Received)).ok();
            }
            StreamEvent::PeerSendShutdown => outcome = store(&[]).map_err(|error| error.to_string()),
            StreamEvent::SendComplete { client_context, .. } => sent(client_context),
            StreamEvent::ShutdownComplete { .. } => {
                news.send(News::Fetched(std::mem::replace(&mut outcome, Ok(())))).ok();
            }
            _ => {}
        }
        Ok(())
    }
}

/// Requests all files of a connection; the streams must live until all are fetched.
fn request(connection: &Connection, urls: &[String], news: &Sender<News>, flags: SendFlags) -> Outcome<Vec<Stream>> {
    let mut streams = Vec::new();
    for url in urls {
        let path = split(url)?.1;
        let stream = Stream::open(connection, StreamOpenFlags::NONE, fetch_stream(path.into(), news.clone()))?;
        stream.start(StreamStartFlags::NONE)?;
        let line = format!("GET /{path}\r\n");
        let memory = map(line.len(), None);
        // SAFETY: the memory is new and as long as the line.
        unsafe { memory.copy_from_nonoverlapping(line.as_ptr(), line.len()) };
        send(&stream, memory, line.len(), flags)?;
        streams.push(stream);
    }
    Ok(streams)
}

/// Fetches files over one connection, all at once; gives the ticket for the next connection, if wanted.
fn fetch(
    registration: &Registration,
    configuration: &Configuration,
    test: &str,
    urls: &[String],
    ticket: Option<Vec<u8>>,
) -> Outcome<Option<Vec<u8>>> {
    let (sender, news): (Sender<News>, Receiver<News>) = channel();
    let teller = sender.clone();
    let connection = Connection::open(registration, move |_: ConnectionRef, event: ConnectionEvent| {
        let item = match event {
            ConnectionEvent::Connected { .. } => News::Connected,
            ConnectionEvent::ResumptionTicketReceived { resumption_ticket } => News::Ticket(resumption_ticket.to_vec()),
            ConnectionEvent::ShutdownInitiatedByTransport { status, error_code } => {
                News::Closed(format!("connection ended: {status} ({error_code:#x})"))
            }
            ConnectionEvent::ShutdownInitiatedByPeer { error_code } => {
                News::Closed(format!("closed by the server ({error_code:#x})"))
            }
            ConnectionEvent::ShutdownComplete { .. } => News::Closed("connection ended".into()),
            _ => return Ok(()),
        };
        teller.send(item).ok();
        Ok(())
    })?;
    let secrets = keep_secrets(&connection)?;
    let tickets = matches!(test, "resumption" | "zerortt");
    let mut streams = Vec::new();
    if let Some(ticket) = &ticket {
        // SAFETY: the handle is valid, the ticket as long as said.
        unsafe {
            let (pointer, length) = (ticket.as_ptr().cast(), ticket.len() as u32);
            Api::set_param(connection.as_raw(), QUIC_PARAM_CONN_RESUMPTION_TICKET, length, pointer)?;
        }
        if test == "zerortt" {
            streams = request(&connection, urls, &sender, SendFlags::ALLOW_0_RTT)?;
        }
    }
    let (authority, _) = split(&urls[0])?;
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
    connection.start(configuration, host, port.parse()?)?;
    let (mut left, mut next, mut updated) = (urls.len(), None, false);
    while left > 0 || (tickets && ticket.is_none() && next.is_none()) {
        match if left > 0 { news.recv()? } else { news.recv_timeout(TICKET)? } {
            News::Connected => {
                secrets.map_or(Ok(()), log_secrets)?;
                if streams.is_empty() {
                    streams = request(&connection, urls, &sender, SendFlags::NONE)?;
                }
            }
            // SAFETY: the parameter has no value.
            News::Received if test == "keyupdate" && !updated => unsafe {
                updated = Api::set_param(connection.as_raw(), FORCE_KEY_UPDATE, 0, null_mut()).is_ok();
            },
            News::Received => {}
            News::Ticket(ticket) => next = Some(ticket),
            News::Fetched(outcome) => {
                outcome?;
                left -= 1;
            }
            News::Closed(reason) => return Err(reason.into()),
        }
    }
    connection.shutdown(ConnectionShutdownFlags::NONE, 0);
    // The close is sent at once; what follows has nothing left to do.
    std::thread::sleep(CLOSING);
    std::mem::forget((streams, connection));
    Ok(next)
}

fn split(url: &str) -> Outcome<(&str, &str)> {
    Ok(url.strip_prefix("https://").and_then(|rest| rest.split_once('/')).ok_or(format!("{url} is not a URL"))?)
}

fn run() -> Outcome {
    let test = env::var("TESTCASE").unwrap_or_default();
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let mut congestion_control = "cubic".to_owned();
    if let Some(at) = arguments.iter().position(|argument| argument == "--cc") {
        arguments.remove(at);
        congestion_control = if at < arguments.len() { arguments.remove(at) } else { String::new() };
    }
    if !matches!(congestion_control.as_str(), "cubic" | "bbr") {
        return Err("--cc is cubic or bbr".into());
    }
    let bbr = congestion_control == "bbr";
    // For good: to close it would wait for connections that nobody closes any more.
    let registration: &Registration = Box::leak(Box::new(Registration::new(&RegistrationConfig::new())?));
    if env::var("ROLE").as_deref() == Ok("server") {
        return serve(registration, &test, bbr);
    }
    std::thread::spawn(|| {
        wait_for_term();
        // SAFETY: all that was written has been handed to the kernel.
        unsafe { libc::_exit(1) }
    });
    let configuration: &Configuration = Box::leak(Box::new(configure(registration, &test, bbr, false)?));
    let batches: Vec<&[String]> = match test.as_str() {
        "resumption" | "zerortt" if arguments.len() > 1 => vec![&arguments[..1], &arguments[1..]],
        "multiconnect" => arguments.chunks(1).collect(),
        _ if arguments.is_empty() => return Err("nothing to fetch".into()),
        _ => vec![&arguments],
    };
    let mut ticket = None;
    for batch in batches {
        ticket = fetch(registration, configuration, &test, batch, ticket)?;
    }
    Ok(())
}

fn main() {
    // SAFETY: before any other thread is there, so that all of them have the signal blocked.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &term(), null_mut()) };
    let outcome = run();
    if let Err(error) = &outcome {
        eprintln!("msquic: {error}");
    }
    // At once, whatever the stack's own threads are at.
    // SAFETY: all that was written has been handed to the kernel.
    unsafe { libc::_exit(outcome.is_err().into()) }
}
