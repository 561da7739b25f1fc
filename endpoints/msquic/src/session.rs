//! A connection of MsQuic on which files are fetched or served, driven by the stack's callbacks.

use std::mem::forget;
use std::ptr::{from_ref, null_mut};
use std::sync::{Arc, Mutex, OnceLock};

use contract::{Outcome, Streams, Task};
use msquic::{
    Api, BufferRef, Connection, ConnectionEvent, ConnectionRef, SendFlags, Status, Stream, StreamEvent,
    StreamOpenFlags, StreamRef, StreamShutdownFlags, StreamStartFlags,
};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};

use crate::setup::{keep_secrets, log_secrets, set, FORCE_KEY_UPDATE};

/// What the stack holds until the other end has it.
type Sent = ([BufferRef; 1], Vec<u8>);

fn send(stream: &Stream, content: &[u8], flags: SendFlags) -> Result<usize, Status> {
    let content = content.to_vec();
    let sent: &Sent = Box::leak(Box::new(([content.as_slice().into()], content)));
    // SAFETY: what is leaked lives until SendComplete gives it back.
    unsafe { stream.send(&sent.0, flags | SendFlags::FIN, from_ref(sent).cast())? };
    Ok(sent.1.len())
}

/// What the callbacks of a connection share; the stack calls one at a time.
pub struct Session {
    task: &'static Task,
    streams: Mutex<Streams>,
    /// For the next connection; a client may want it before it ends.
    pub ticket: OnceLock<Vec<u8>>,
    ticket_wanted: bool,
    end: UnboundedSender<Outcome>,
}

impl Session {
    /// And where it tells how it ends.
    pub fn new(task: &'static Task, streams: Streams, ticket_wanted: bool) -> (Arc<Self>, UnboundedReceiver<Outcome>) {
        let (end, ended) = unbounded_channel();
        (Arc::new(Self { task, streams: streams.into(), ticket: OnceLock::new(), ticket_wanted, end }), ended)
    }

    /// Lets a connection call back.
    pub fn attach(self: Arc<Self>, connection: &Connection) -> Result<(), Status> {
        let secrets = keep_secrets(connection)?;
        connection.set_callback_handler(move |connection: ConnectionRef, event: ConnectionEvent| {
            match event {
                ConnectionEvent::Connected { .. } => {
                    self.check(log_secrets(secrets).map(|()| self.connected(&connection)));
                }
                ConnectionEvent::PeerStreamStarted { stream, .. } => {
                    stream.set_callback_handler(self.clone().stream_callback(&connection));
                }
                ConnectionEvent::ResumptionTicketReceived { resumption_ticket } => {
                    self.ticket.set(resumption_ticket.to_vec()).ok();
                    self.end_if_done();
                }
                ConnectionEvent::ShutdownInitiatedByTransport { status, .. } => {
                    self.check(Err(format!("the connection failed: {status}").into()));
                }
                ConnectionEvent::ShutdownInitiatedByPeer { error_code } => {
                    self.check(Err(format!("closed by the peer: {error_code:#x}").into()));
                }
                // SAFETY: a server's last event of the handle, which nobody else closes.
                ConnectionEvent::ShutdownComplete { .. } if self.task.server => {
                    drop(unsafe { Connection::from_raw(connection.as_raw()) });
                }
                _ => {}
            }
            Ok(())
        });
        Ok(())
    }

    fn connected(self: &Arc<Self>, connection: &Connection) {
        match Api::get_ffi().ConnectionSendResumptionTicket {
            // SAFETY: the handle is valid, and no data goes with the ticket.
            Some(send_ticket) if self.task.server => unsafe {
                send_ticket(connection.as_raw(), 1, 0, null_mut());
            },
            _ => self.request(connection, SendFlags::NONE),
        }
    }

    /// Requests all files that were not yet.
    pub fn request(self: &Arc<Self>, connection: &Connection, flags: SendFlags) {
        let one = |content: &[u8]| {
            let stream = Stream::open(connection, StreamOpenFlags::NONE, self.clone().stream_callback(connection))?;
            stream.start(StreamStartFlags::NONE)?;
            let sent = send(&stream, content, flags);
            forget(stream);
            sent
        };
        let send = |_, content: &[u8]| one(content).map_err(|status| self.check(Err(status.into()))).ok();
        self.streams.lock().unwrap().send(send);
    }

    fn stream_callback(
        self: Arc<Self>,
        connection: &Connection,
    ) -> impl FnMut(StreamRef, StreamEvent) -> Result<(), Status> {
        // SAFETY: a connection is valid as long as its streams.
        let (connection, mut update) = (unsafe { connection.as_raw() }, self.task.is("keyupdate"));
        move |stream, event| {
            match event {
                StreamEvent::Receive { buffers, .. } => {
                    // Refused until the handshake is confirmed.
                    update = update && set::<u8>(connection, FORCE_KEY_UPDATE, &[]).is_err();
                    self.check(self.receive(&stream, buffers, false));
                }
                StreamEvent::PeerSendShutdown => self.check(self.receive(&stream, &[], true)),
                StreamEvent::PeerSendAborted { .. } => self.check(Err("a stream was reset".into())),
                // SAFETY: it is what `send` leaked.
                StreamEvent::SendComplete { client_context, .. } => {
                    drop(unsafe { Box::from_raw(client_context.cast::<Sent>().cast_mut()) });
                }
                // SAFETY: the handle's last event; nobody else closes it.
                StreamEvent::ShutdownComplete { .. } => drop(unsafe { Stream::from_raw(stream.as_raw()) }),
                _ => {}
            }
            Ok(())
        }
    }

    fn receive(&self, stream: &Stream, parts: &[BufferRef], ended: bool) -> Outcome {
        let bytes = parts.iter().map(BufferRef::as_bytes).collect::<Vec<_>>().concat();
        let mut streams = self.streams.lock().unwrap();
        if !streams.receive(stream.get_stream_id()?, &bytes, ended)? {
            stream.shutdown(StreamShutdownFlags::ABORT, 1)?;
        }
        streams.send(|_, content| send(stream, content, SendFlags::NONE).ok());
        drop(streams);
        self.end_if_done();
        Ok(())
    }

    fn end_if_done(&self) {
        if self.streams.lock().unwrap().fetched() && !(self.ticket_wanted && self.ticket.get().is_none()) {
            self.end.send(Ok(())).ok();
        }
    }

    /// Ends the session with an error, if it is one.
    fn check(&self, outcome: Outcome) {
        outcome.or_else(|error| self.end.send(Err(error))).ok();
    }
}
