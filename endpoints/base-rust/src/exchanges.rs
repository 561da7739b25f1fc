//! HTTP/0.9 for stacks that hand over the bytes of streams as they come.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::mem::take;

use crate::{after, content, create, request, Outcome};

/// What one end of a stream does with the bytes that come.
#[derive(Debug)]
enum Exchange {
    /// A server collects a request.
    Request(Vec<u8>),
    /// A client stores a file.
    Store(File),
}

impl Default for Exchange {
    fn default() -> Self {
        Self::Request(Vec::new())
    }
}

impl Exchange {
    /// Takes what came; gives what the file holds that a request names, when the request is complete.
    fn receive(&mut self, part: &[u8]) -> Outcome<Option<Vec<u8>>> {
        match self {
            Self::Store(file) => file.write_all(part)?,
            Self::Request(request) => {
                request.extend_from_slice(part);
                if request.ends_with(b"\n") {
                    return content(&take(request)).map(Some);
                }
            }
        }
        Ok(None)
    }
}

/// The streams of a connection, for stacks that number them.
#[derive(Default)]
pub struct Streams {
    exchanges: BTreeMap<u64, Exchange>,
    /// Requests or answers, and how much of each the stack has taken.
    outgoing: BTreeMap<u64, (Vec<u8>, usize)>,
    /// A client's files that are not asked for yet: position, the position of the file before it, and the path.
    waiting: Vec<(usize, usize, String)>,
    /// The position of the file on each of a client's streams.
    places: BTreeMap<u64, usize>,
}

impl Streams {
    /// A client's, on which files are fetched.
    pub fn fetching(paths: &[String]) -> Outcome<Self> {
        Self::in_order(paths, &after(paths.len())?)
    }

    fn in_order(paths: &[String], after: &[usize]) -> Outcome<Self> {
        let waiting =
            paths.iter().zip(after).enumerate().map(|(place, (path, after))| (place + 1, *after, path.clone()));
        let mut streams = Self { waiting: waiting.collect(), ..Self::default() };
        streams.ask(0)?;
        Ok(streams)
    }

    /// Asks for the files that come after the one at a position.
    fn ask(&mut self, arrived: usize) -> Outcome {
        let (due, waiting) = take(&mut self.waiting).into_iter().partition(|(_, after, _)| *after == arrived);
        self.waiting = waiting;
        for (place, _, path) in Vec::<(usize, usize, String)>::from(due) {
            let stream = 4 * self.places.len() as u64;
            self.places.insert(stream, place);
            self.exchanges.insert(stream, Exchange::Store(create(&path)?));
            self.outgoing.insert(stream, (request(&path), 0));
        }
        Ok(())
    }

    /// Takes what came; false if a request cannot be answered, so that the stream has to be reset.
    pub fn receive(&mut self, stream: u64, part: &[u8], ended: bool) -> Outcome<bool> {
        let exchange = self.exchanges.entry(stream).or_default();
        match exchange.receive(part) {
            Ok(answer) => self.outgoing.extend(answer.map(|answer| (stream, (answer, 0)))),
            Err(error) if matches!(exchange, Exchange::Store(_)) => return Err(error),
            Err(error) => {
                eprintln!("stream {stream}: {error}");
                return Ok(false);
            }
        }
        if ended {
            self.exchanges.remove(&stream);
            if let Some(place) = self.places.get(&stream) {
                self.ask(*place)?;
            }
        }
        Ok(true)
    }

    /// Hands on what is to be sent; `send` tells how many bytes the stack took, None if it takes no more for good.
    pub fn send(&mut self, mut send: impl FnMut(u64, &[u8]) -> Option<usize>) {
        self.outgoing.retain(|stream, (content, sent)| {
            let taken = send(*stream, &content[*sent..]);
            *sent += taken.unwrap_or_default();
            taken.is_some() && *sent < content.len()
        });
    }

    /// Whether all files are stored.
    pub fn fetched(&self) -> bool {
        self.exchanges.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_with_its_line() {
        let mut exchange = Exchange::default();
        assert!(exchange.receive(b"GET /no/such").unwrap().is_none());
        assert!(exchange.receive(b"/file\r\n").unwrap_err().to_string().contains("/file"));
        assert!(exchange.receive(b"").unwrap().is_none());
    }

    #[test]
    fn a_request_without_an_answer_is_not_the_end_of_the_connection() {
        let mut streams = Streams::default();
        assert!(streams.receive(4, b"GET /no/such/", false).unwrap());
        assert!(!streams.receive(4, b"file\r\n", true).unwrap());
    }

    #[test]
    fn what_is_sent_goes_out_as_the_stack_takes_them() {
        let mut streams = Streams::default();
        streams.outgoing.extend([(0, (b"abcde".to_vec(), 0)), (4, (Vec::new(), 0)), (8, (b"x".to_vec(), 0))]);
        let mut seen = Vec::new();
        for _ in 0..4 {
            streams.send(|stream, content| {
                seen.push((stream, content.to_vec()));
                (stream != 8).then_some(content.len().min(2))
            });
        }
        seen.sort();
        let of_first = [&b"abcde"[..], b"cde", b"e"].map(|content| (0, content.to_vec()));
        assert_eq!(seen[..3], of_first);
        assert_eq!(seen[3..], [(4, Vec::new()), (8, b"x".to_vec())]);
    }
}
