//! quiche as an endpoint: HTTP/0.9 over QUIC, client or server, chosen by ROLE and TESTCASE.

use std::collections::{HashMap, VecDeque};
use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::{fd::AsRawFd, unix::fs::FileExt};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, SendInfo};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Bytes of UDP payload, as in the stack's own programs.
const DATAGRAM: usize = 1350;
/// Bytes of flow control for a stream and a connection: the most that the stack's own tuning would grow to.
const WINDOWS: (u64, u64) = (16 << 20, 24 << 20);
/// Sleeps are not more exact than this, so a packet that is due sooner leaves now.
const PACING_SLACK: Duration = Duration::from_micros(200);
const CONNECTION_ID: usize = quiche::MAX_CONN_ID_LEN;

static TERMINATED: AtomicBool = AtomicBool::new(false);

extern "C" fn terminate(_: libc::c_int) {
    TERMINATED.store(true, Ordering::Relaxed);
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn random() -> Outcome<[u8; CONNECTION_ID]> {
    let mut bytes = [0; CONNECTION_ID];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn configure(congestion_control: &str, early: bool) -> Outcome<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[b"hq-interop"])?;
    config.set_cc_algorithm_name(congestion_control).map_err(|_| "--cc is cubic, reno or bbr2_gcongestion")?;
    config.set_max_idle_timeout(30_000);
    config.set_max_recv_udp_payload_size(65527);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_stream_data_bidi_local(WINDOWS.0);
    config.set_initial_max_stream_data_bidi_remote(WINDOWS.0);
    config.set_initial_max_data(WINDOWS.1);
    config.set_initial_max_streams_bidi(100);
    config.set_active_connection_id_limit(4);
    config.log_keys();
    if early {
        config.enable_early_data();
    }
    Ok(config)
}

/// Blocks until a datagram is here or it is time.
fn wait(socket: &UdpSocket, until: Option<Instant>) {
    let most = Duration::from_millis(100);
    let time = until.map_or(most, |until| until.saturating_duration_since(Instant::now()).min(most));
    let mut descriptor = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: all pointers are to live locals, and null leaves the signal mask alone.
    unsafe { libc::ppoll(&mut descriptor, 1, &limit, std::ptr::null()) };
}

/// A connection, the packet that pacing holds back, and what goes on on its streams.
struct Peer {
    quic: Connection,
    packet: [u8; DATAGRAM],
    held: Option<(usize, SendInfo)>,
    requests: HashMap<u64, Vec<u8>>,
    answers: HashMap<u64, (File, u64)>,
    downloads: HashMap<u64, File>,
}

impl Peer {
    fn new(mut quic: Connection, role: &str) -> Outcome<Self> {
        if let Some(path) = variable("SSLKEYLOGFILE") {
            quic.set_keylog(Box::new(OpenOptions::new().append(true).create(true).open(path)?));
        }
        if let Some(directory) = variable("QLOGDIR") {
            let name = format!("{role}-{}", quic.trace_id());
            let file = File::create(Path::new(&directory).join(format!("{name}.sqlog")))?;
            quic.set_qlog_with_level(Box::new(BufWriter::new(file)), name, String::new(), quiche::QlogLevel::Extra);
        }
        let (requests, answers, downloads) = Default::default();
        Ok(Self { quic, packet: [0; DATAGRAM], held: None, requests, answers, downloads })
    }

    /// Sends what is due.
    fn send(&mut self, socket: &UdpSocket) {
        if self.quic.timeout_instant().is_some_and(|time| time <= Instant::now()) {
            self.quic.on_timeout();
        }
        while let Some((length, mut info)) = self.held.take().or_else(|| self.quic.send(&mut self.packet).ok()) {
            if info.at <= Instant::now() + PACING_SLACK || self.quic.local_error().is_some() {
                match socket.send_to(&self.packet[..length], info.to) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => info.at += Duration::from_millis(1),
                    _ => continue,
                }
            }
            self.held = Some((length, info));
            return;
        }
    }

    fn wake(&self) -> Option<Instant> {
        [self.held.as_ref().map(|(_, info)| info.at), self.quic.timeout_instant()].into_iter().flatten().min()
    }

    /// Reads requests and writes answers, as far as flow and congestion control let.
    fn serve(&mut self, part: &mut [u8]) {
        for stream in self.quic.readable() {
            while let Ok((length, ended)) = self.quic.stream_recv(stream, part) {
                let request = self.requests.entry(stream).or_default();
                request.extend_from_slice(&part[..length]);
                if !(ended || request.ends_with(b"\n")) || self.answers.contains_key(&stream) {
                    continue;
                }
                match open(request) {
                    Some(file) => drop(self.answers.insert(stream, (file, 0))),
                    None => drop(self.quic.stream_shutdown(stream, quiche::Shutdown::Write, 1)),
                }
            }
        }
        let quic = &mut self.quic;
        self.answers.retain(|stream, (file, offset)| loop {
            let Ok(capacity) = quic.stream_capacity(*stream) else { return false };
            let most = part.len().min(capacity);
            let Ok(length) = file.read_at(&mut part[..most], *offset) else { return false };
            let ended = most > 0 && length == 0;
            match quic.stream_send(*stream, &part[..length], ended) {
                Ok(_) if ended => return false,
                Ok(sent) if sent > 0 => *offset += sent as u64,
                Ok(_) | Err(quiche::Error::Done) => return true,
                Err(_) => return false,
            }
        });
    }
}

fn open(request: &[u8]) -> Option<File> {
    let path = std::str::from_utf8(request).ok()?.trim_end().strip_prefix("GET /")?;
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    File::open(Path::new("/www").join(path)).ok().filter(|_| inside)
}

struct Server {
    socket: UdpSocket,
    address: SocketAddr,
    config: Config,
    /// Retry tokens begin with it; None where no Retry is wanted.
    secret: Option<[u8; CONNECTION_ID]>,
    peers: HashMap<u64, Peer>,
    numbers: HashMap<ConnectionId<'static>, u64>,
}

impl Server {
    fn received(&mut self, datagram: &mut [u8], from: SocketAddr) -> Outcome {
        let header = Header::from_slice(datagram, CONNECTION_ID)?;
        if !self.numbers.contains_key(&header.dcid) {
            if header.ty != quiche::Type::Short && !quiche::version_is_supported(header.version) {
                let mut packet = [0; DATAGRAM];
                let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut packet)?;
                self.socket.send_to(&packet[..length], from)?;
            } else if header.ty == quiche::Type::Initial {
                self.accept(&header, from)?;
            }
        }
        let Some(number) = self.numbers.get(&header.dcid).copied() else { return Ok(()) };
        let Some(peer) = self.peers.get_mut(&number) else { return Ok(()) };
        peer.quic.recv(datagram, RecvInfo { from, to: self.address })?;
        while peer.quic.is_established() && peer.quic.scids_left() > 0 {
            let spare = ConnectionId::from_vec(random()?.into());
            peer.quic.new_scid(&spare, u128::from_ne_bytes(random()?[..16].try_into()?), false)?;
            self.numbers.insert(spare, number);
        }
        Ok(())
    }

    fn accept(&mut self, header: &Header, from: SocketAddr) -> Outcome {
        let token = header.token.as_deref().unwrap_or_default();
        let mut own = ConnectionId::from_vec(random()?.into());
        let mut original = None;
        if let Some(secret) = self.secret {
            let prefix = [&secret[..], from.to_string().as_bytes(), b" "].concat();
            let Some(id) = token.strip_prefix(&prefix[..]) else {
                let (token, mut packet) = ([&prefix[..], &header.dcid].concat(), [0; DATAGRAM]);
                let length = quiche::retry(&header.scid, &header.dcid, &own, &token, header.version, &mut packet)?;
                self.socket.send_to(&packet[..length], from)?;
                return Ok(());
            };
            original = Some(ConnectionId::from_vec(id.to_vec()));
            own = header.dcid.clone().into_owned();
        }
        let quic = quiche::accept(&own, original.as_ref(), self.address, from, &mut self.config)?;
        let number = self.numbers.len() as u64;
        self.numbers.insert(header.dcid.clone().into_owned(), number);
        self.numbers.insert(own, number);
        self.peers.insert(number, Peer::new(quic, "server")?);
        Ok(())
    }
}

fn serve(mut config: Config, retry: bool) -> Outcome {
    config.load_cert_chain_from_pem_file("/certs/cert.pem")?;
    config.load_priv_key_from_pem_file("/certs/priv.key")?;
    // Takes IPv4 too.
    let socket = UdpSocket::bind("[::]:443")?;
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let secret = if retry { Some(random()?) } else { None };
    let mut server = Server { socket, address, config, secret, peers: HashMap::new(), numbers: HashMap::new() };
    let mut part = vec![0; 1 << 16];
    while !TERMINATED.load(Ordering::Relaxed) {
        // Not more at once than leaves time to send.
        for _ in 0..64 {
            let Ok((length, from)) = server.socket.recv_from(&mut part) else { break };
            if let Err(error) = server.received(&mut part[..length], from) {
                eprintln!("quiche: from {from}: {error}");
            }
        }
        for peer in server.peers.values_mut() {
            peer.serve(&mut part);
            peer.send(&server.socket);
        }
        server.peers.retain(|_, peer| !peer.quic.is_closed());
        wait(&server.socket, server.peers.values().filter_map(Peer::wake).min());
    }
    Ok(())
}

/// Fetches files over one connection, all at once; gives the session for the next connection.
fn fetch(config: &mut Config, urls: &[String], session: Option<Vec<u8>>) -> Outcome<Option<Vec<u8>>> {
    let mut paths = VecDeque::new();
    let mut authority = "";
    for url in urls {
        let path;
        (authority, path) = url.strip_prefix("https://").and_then(|rest| rest.split_once('/')).ok_or("not a URL")?;
        paths.push_back(path);
    }
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
    let server = (host, port.parse()?).to_socket_addrs()?.next().ok_or("the server has no address")?;
    let socket = UdpSocket::bind(if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let mut quic = quiche::connect(Some(host), &ConnectionId::from_ref(&random()?), address, server, config)?;
    if let Some(session) = session {
        quic.set_session(&session)?;
    }
    let mut peer = Peer::new(quic, "client")?;
    let (mut part, mut streams) = (vec![0; 1 << 16], (0..).step_by(4));
    loop {
        // The first packets, which tell whether early data may follow.
        peer.send(&socket);
        let ready = peer.quic.is_established() || peer.quic.is_in_early_data();
        while ready && !paths.is_empty() && peer.quic.peer_streams_left_bidi() > 0 {
            let (path, stream) = (paths.pop_front().unwrap_or_default(), streams.next().unwrap_or_default());
            let name = Path::new(path).file_name().ok_or("the URL names no file")?;
            peer.quic.stream_send(stream, format!("GET /{path}\r\n").as_bytes(), true)?;
            peer.downloads.insert(stream, File::create(Path::new("/downloads").join(name))?);
        }
        peer.send(&socket);
        if paths.is_empty() && peer.downloads.is_empty() {
            return Ok(peer.quic.session().map(<[u8]>::to_vec));
        }
        if TERMINATED.load(Ordering::Relaxed) {
            return Err("terminated".into());
        }
        if peer.quic.is_closed() {
            return Err(format!("connection ended: {:?}", peer.quic.local_error().or(peer.quic.peer_error())).into());
        }
        wait(&socket, peer.wake());
        for _ in 0..64 {
            let Ok((length, from)) = socket.recv_from(&mut part) else { break };
            peer.quic.recv(&mut part[..length], RecvInfo { from, to: address }).ok();
        }
        for stream in peer.quic.readable() {
            loop {
                match peer.quic.stream_recv(stream, &mut part) {
                    Ok((length, ended)) => {
                        peer.downloads.get_mut(&stream).ok_or("data after the end")?.write_all(&part[..length])?;
                        if ended {
                            peer.downloads.remove(&stream);
                            break;
                        }
                    }
                    Err(quiche::Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if paths.is_empty() && peer.downloads.is_empty() {
            peer.quic.close(true, 0, b"")?;
        }
    }
}

fn run() -> Outcome {
    let test = env::var("TESTCASE").unwrap_or_default();
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let mut congestion_control = "cubic".to_owned();
    if let Some(at) = arguments.iter().position(|argument| argument == "--cc") {
        arguments.remove(at);
        congestion_control = if at < arguments.len() { arguments.remove(at) } else { String::new() };
    }
    let mut config = configure(&congestion_control, test == "zerortt")?;
    // SAFETY: the handler only stores to an atomic.
    unsafe { libc::signal(libc::SIGTERM, terminate as *const () as libc::sighandler_t) };
    if env::var("ROLE").as_deref() == Ok("server") {
        return serve(config, test == "retry");
    }
    config.load_verify_locations_from_file("/certs/ca.pem")?;
    config.verify_peer(true);
    let batches: Vec<&[String]> = match test.as_str() {
        "resumption" | "zerortt" if arguments.len() > 1 => vec![&arguments[..1], &arguments[1..]],
        "multiconnect" => arguments.chunks(1).collect(),
        _ => vec![&arguments],
    };
    let mut session = None;
    for batch in batches {
        session = fetch(&mut config, batch, session)?.filter(|_| test == "resumption" || test == "zerortt");
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    if let Err(error) = run() {
        eprintln!("quiche: {error}");
        return std::process::ExitCode::FAILURE;
    }
    std::process::ExitCode::SUCCESS
}
