//! quiche as an endpoint: HTTP/0.9 over QUIC, client or server.

use std::net::SocketAddr;
use std::time::Instant;

use contract::{Batch, Outcome, Retry, Sender, Socket, Streams, Task};
use contract::{ALPN, AUTHORITY, CERTIFICATES, IDLE, KEY, WINDOW};
use quiche::{Config, Connection, ConnectionId, Error, Header, QlogLevel, RecvInfo, Shutdown, Type, MAX_CONN_ID_LEN};

const DATAGRAM: usize = 1350; // bytes of UDP payload, as in the stack's own programs

fn configure(task: &Task) -> Outcome<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[ALPN.as_bytes()])?;
    config.set_cc_algorithm_name(&task.congestion_control)?;
    config.set_max_idle_timeout(IDLE.into());
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_stream_data_bidi_local(WINDOW.into());
    config.set_initial_max_stream_data_bidi_remote(WINDOW.into());
    config.set_initial_max_data(u64::from(WINDOW) * 3 / 2); // the most that the stack's own tuning would grow to
    config.set_initial_max_streams_bidi(100);
    config.log_keys();
    task.is("zerortt").then(|| config.enable_early_data());
    if task.server {
        config.load_cert_chain_from_pem_file(CERTIFICATES)?;
        config.load_priv_key_from_pem_file(KEY)?;
    } else {
        config.load_verify_locations_from_file(AUTHORITY)?;
        config.verify_peer(true);
    }
    Ok(config)
}

fn random_id() -> ConnectionId<'static> {
    ConnectionId::from_vec(rand::random::<[u8; MAX_CONN_ID_LEN]>().into())
}

/// A connection, known by its IDs and by the one that the client chose for its first packet.
struct Peer {
    quic: Connection,
    first: ConnectionId<'static>,
    sender: Sender,
    streams: Streams,
}

impl Peer {
    fn new(mut quic: Connection, first: ConnectionId<'static>, role: &str, streams: Streams) -> Outcome<Self> {
        contract::key_log()?.into_iter().for_each(|file| quic.set_keylog(Box::new(file)));
        let name = format!("{role}-{}", quic.trace_id());
        if let Some(file) = contract::qlog(&name)? {
            quic.set_qlog_with_level(Box::new(file), name, String::new(), QlogLevel::Extra);
        }
        Ok(Self { quic, first, sender: Sender::default(), streams })
    }

    /// Reads, writes and sends what can be; gives the time at which there is more to do.
    fn work(&mut self, socket: &Socket) -> Outcome<Option<Instant>> {
        let (quic, mut part) = (&mut self.quic, [0; 1 << 16]);
        for id in quic.readable() {
            while quic.stream_readable(id) {
                let (length, ended) = quic.stream_recv(id, &mut part)?;
                if !self.streams.receive(id, &part[..length], ended)? {
                    quic.stream_shutdown(id, Shutdown::Write, 1)?;
                }
            }
        }
        let ready = quic.peer_streams_left_bidi() > 0 || quic.peer_transport_params().is_some(); // else DATA_BLOCKED
        self.streams.send(|id, content| match ready.then(|| quic.stream_send(id, content, true)) {
            None | Some(Err(Error::Done | Error::StreamLimit)) => Some(0),
            Some(taken) => taken.ok(),
        });
        if quic.is_established() && quic.scids_left() > 0 {
            quic.new_scid(&random_id(), rand::random(), false)?;
        }
        quic.on_timeout(); // acts on those that are over
        let paced = quic.local_error().is_none();
        let next = |packet: &mut [u8]| quic.send(packet).ok().map(|(length, info)| (length, info.to, info.at));
        Ok(self.sender.send(socket, paced, next).into_iter().chain(self.quic.timeout_instant()).min())
    }
}

/// A connection for a first packet; None after what is due instead: Version Negotiation, Retry.
fn accept(config: &mut Config, retry: Retry, header: &Header, from: SocketAddr, to: &Socket) -> Outcome<Option<Peer>> {
    let Header { ty, version, scid, dcid, token, .. } = header;
    let (mut own, mut original, mut packet, mut length) = (random_id(), None, [0; DATAGRAM], 0);
    if *version != 0 && !quiche::version_is_supported(*version) {
        length = quiche::negotiate_version(scid, dcid, &mut packet)?;
    } else if *ty == Type::Initial && retry.wanted() {
        if let Some(id) = retry.original(token.as_deref(), from) {
            (own, original) = (dcid.clone(), Some(ConnectionId::from_vec(id)));
        } else {
            length = quiche::retry(scid, dcid, &own, &retry.token(dcid, from), *version, &mut packet)?;
        }
    }
    if length > 0 || *ty != Type::Initial {
        to.send(&packet[..length], from);
        return Ok(None);
    }
    let quic = quiche::accept(&own, original.as_ref(), to.address, from, config)?;
    Peer::new(quic, dcid.clone().into_owned(), "server", Streams::default()).map(Some)
}

fn serve(mut config: Config, retry: Retry) -> Outcome {
    let socket = Socket::open("[::]:443".parse()?)?;
    let (mut peers, mut until): (Vec<Peer>, _) = (Vec::new(), None);
    while socket.receive(until, |datagram, from| {
        let header = Header::from_slice(datagram, MAX_CONN_ID_LEN)?;
        let is_its = |peer: &Peer| peer.first == header.dcid || peer.quic.source_ids().any(|id| *id == header.dcid);
        if !peers.iter().any(is_its) {
            peers.extend(accept(&mut config, retry, &header, from, &socket)?);
        }
        let recv = |peer: &mut Peer| peer.quic.recv(datagram, RecvInfo { from, to: socket.address });
        Ok(peers.iter_mut().find(|peer| is_its(peer)).map(recv).transpose().map(drop)?)
    }) {
        let work = |peer: &mut Peer| peer.work(&socket).inspect_err(|error| eprintln!("quiche: {error}")).ok()?;
        until = peers.iter_mut().filter_map(work).min();
        peers.retain(|peer| !peer.quic.is_closed());
    }
    Ok(())
}

/// Fetches files over one connection; gives the session for the next one.
fn fetch(config: &mut Config, batch: &Batch, session: Option<Vec<u8>>) -> Outcome<Option<Vec<u8>>> {
    let (socket, server) = Socket::to(batch)?;
    let mut quic = quiche::connect(Some(&batch.host), &random_id(), socket.address, server, config)?;
    session.map_or(Ok(()), |session| quic.set_session(&session))?;
    let mut peer = Peer::new(quic, ConnectionId::default(), "client", Streams::fetching(&batch.paths)?)?;
    let mut until = peer.work(&socket)?;
    while !peer.streams.fetched() {
        let info = |from| RecvInfo { from, to: socket.address };
        let went_on = socket.receive(until, |datagram, from| Ok(peer.quic.recv(datagram, info(from)).map(|_| ())?));
        if !went_on || peer.quic.is_closed() {
            return Err(format!("ended early: {:?}", peer.quic.local_error().or(peer.quic.peer_error())).into());
        }
        until = peer.work(&socket)?;
    }
    peer.quic.close(true, 0, b"")?;
    peer.work(&socket)?;
    Ok(peer.quic.session().map(<[u8]>::to_vec))
}

fn main() {
    contract::main("quiche", &["cubic", "reno", "bbr2_gcongestion"], |task| {
        let mut config = configure(&task)?;
        if task.server {
            return serve(config, Retry::new(task.is("retry")));
        }
        task.fetch(|batch, session| fetch(&mut config, batch, session))
    })
}
