//! A UDP socket for stacks that leave theirs to the program, with waits as exact as pacing needs.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::{recvfrom, RecvFlags};
use signal_hook::{consts::SIGTERM, flag};

use crate::{Batch, Outcome};

/// Datagrams that are read at once; not more than leaves time to send.
const BURST: usize = 64;
const LONGEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_DATAGRAM: usize = 1 << 16;
/// Waits are not more exact than this, so a packet that is due sooner leaves now.
const SLACK: Duration = Duration::from_micros(200);

pub struct Socket {
    udp: UdpSocket,
    pub address: SocketAddr,
    terminated: Arc<AtomicBool>,
}

impl Socket {
    /// "[::]" takes IPv4 too.
    pub fn open(address: SocketAddr) -> Outcome<Self> {
        let (udp, terminated) = (UdpSocket::bind(address)?, Arc::new(AtomicBool::new(false)));
        flag::register(SIGTERM, terminated.clone())?;
        Ok(Self { address: udp.local_addr()?, udp, terminated })
    }

    /// A client's, and the address of the server.
    pub fn to(batch: &Batch) -> Outcome<(Self, SocketAddr)> {
        let (server, any) = batch.addresses()?;
        Ok((Self::open(any)?, server))
    }

    /// A datagram that the network refuses is lost; an empty one is none.
    pub fn send(&self, datagram: &[u8], to: SocketAddr) {
        if !datagram.is_empty() {
            self.udp.send_to(datagram, to).ok();
        }
    }

    /// Waits until a datagram is here or it is time, and hands on what is here; false after SIGTERM.
    pub fn receive(&self, until: Option<Instant>, mut take: impl FnMut(&mut [u8], SocketAddr) -> Outcome) -> bool {
        let left = until.map_or(LONGEST_WAIT, |until| until.saturating_duration_since(Instant::now()));
        let limit = Timespec { tv_sec: 0, tv_nsec: left.min(LONGEST_WAIT).subsec_nanos().into() };
        poll(&mut [PollFd::new(&self.udp, PollFlags::IN)], Some(&limit)).ok();
        let mut datagram = [0; LONGEST_DATAGRAM];
        for _ in 0..BURST {
            let Ok((length, _, from)) = recvfrom(&self.udp, &mut datagram[..], RecvFlags::DONTWAIT) else { break };
            let Some(from) = from.and_then(|from| SocketAddr::try_from(from).ok()) else { continue };
            take(&mut datagram[..length], from).unwrap_or_else(|error| eprintln!("from {from}: {error}"));
        }
        !self.terminated.load(Ordering::Relaxed)
    }
}

/// A packet of a connection: its length, where it goes to, and when it may leave.
pub type Paced = (usize, SocketAddr, Instant);

/// What a connection sends, at the pace that the stack sets.
pub struct Sender {
    packet: Vec<u8>,
    held: Option<Paced>,
}

impl Default for Sender {
    fn default() -> Self {
        Self { packet: vec![0; LONGEST_DATAGRAM], held: None }
    }
}

impl Sender {
    /// Sends what `next` writes; if paced, up to the first packet that is too early, whose time is given.
    pub fn send(
        &mut self,
        socket: &Socket,
        paced: bool,
        mut next: impl FnMut(&mut [u8]) -> Option<Paced>,
    ) -> Option<Instant> {
        while let Some((length, to, at)) = self.held.take().or_else(|| next(&mut self.packet)) {
            if paced && at > Instant::now() + SLACK {
                self.held = Some((length, to, at));
                return Some(at);
            }
            socket.send(&self.packet[..length], to);
        }
        None
    }
}

/// A server's validation of addresses by Retry, if it is wanted; among endpoints that forge nothing.
#[derive(Clone, Copy)]
pub struct Retry(Option<[u8; 16]>);

impl Retry {
    pub fn new(wanted: bool) -> Self {
        Self(wanted.then(rand::random))
    }

    pub fn wanted(self) -> bool {
        self.0.is_some()
    }

    /// For a client, with the connection ID that it chose.
    pub fn token(self, id: &[u8], client: SocketAddr) -> Vec<u8> {
        [self.start(client).as_slice(), id].concat()
    }

    /// The connection ID in a token that this server made for a client; None if there is no such token.
    pub fn original(self, token: Option<&[u8]>, client: SocketAddr) -> Option<Vec<u8>> {
        token?.strip_prefix(self.start(client).as_slice()).map(<[u8]>::to_vec)
    }

    fn start(self, client: SocketAddr) -> Vec<u8> {
        [&self.0.unwrap_or_default()[..], format!("{client} ").as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_leaves_when_it_is_due_and_not_before() {
        let socket = Socket::open("[::1]:0".parse().unwrap()).unwrap();
        let (start, wait) = (Instant::now(), Duration::from_millis(30));
        let (mut sender, mut written) = (Sender::default(), 0);
        let mut until = None;
        let mut came = Vec::new();
        while came.len() < 2 {
            until = sender.send(&socket, true, |packet| {
                written += 1;
                packet[0] = written;
                (written <= 2).then_some((1, socket.address, start + wait * (written as u32 - 1)))
            });
            socket.receive(until, |datagram, _| Ok(came.push((datagram[0], start.elapsed()))));
        }
        assert_eq!((came[0].0, came[1].0, until), (1, 2, None));
        assert!(came[0].1 < wait && came[1].1 >= wait - SLACK, "{came:?}");
    }
    #[test]
    fn a_token_is_good_for_its_server_and_client_only() {
        let (retry, other) = (Retry::new(true), Retry::new(true));
        let clients = ["[::1]:1", "[::1]:11"].map(|client| client.parse().unwrap());
        let token = retry.token(b"first", clients[0]);
        assert_eq!(retry.original(Some(&token), clients[0]).unwrap(), b"first");
        assert!(retry.original(Some(&token), clients[1]).is_none());
        assert!(other.original(Some(&token), clients[0]).is_none());
        assert!(retry.original(None, clients[0]).is_none());
    }
}
