//! What Rust endpoints have in common: the words of the endpoint contract, and HTTP/0.9 as it has it.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::BufWriter;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Component, Path};

#[cfg(feature = "datagrams")]
mod datagrams;
mod exchanges;
#[cfg(feature = "tokio")]
mod streams;
#[cfg(feature = "datagrams")]
pub use datagrams::{Paced, Retry, Sender, Socket};
pub use exchanges::Streams;
#[cfg(feature = "tokio")]
pub use streams::{all, answer, run_until_terminated, store, turn};

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub const ALPN: &str = "hq-interop";
pub const CERTIFICATES: &str = "/certs/cert.pem";
pub const KEY: &str = "/certs/priv.key";
pub const AUTHORITY: &str = "/certs/ca.pem";
/// Bytes of flow control, twice what 100 Mbit/s need over a round trip of 600 ms; most stacks have a tenth of it.
pub const WINDOW: u32 = 16 << 20;
/// How long a connection's other end may be silent, in milliseconds.
pub const IDLE: u32 = 30_000;

/// What an endpoint has to do.
pub struct Task {
    pub server: bool,
    pub test: String,
    /// What stands after `--cc`, else the stack's default.
    pub congestion_control: String,
    /// What a client fetches: connections in their order.
    pub batches: Vec<Batch>,
}

/// Files that are fetched over one connection, all at once.
#[derive(Debug, PartialEq)]
pub struct Batch {
    pub host: String,
    pub port: u16,
    /// Without the first slash.
    pub paths: Vec<String>,
}

impl Task {
    /// From the environment and the arguments; `known` are the congestion controls, the default first.
    fn read(known: &[&str]) -> Outcome<Self> {
        let server = env::var("ROLE").as_deref() == Ok("server");
        let test = env::var("TESTCASE").unwrap_or_default();
        let mut words = env::args().skip(1).peekable();
        let (mut congestion_control, mut urls) = (known[0].to_owned(), Vec::new());
        while let Some(word) = words.next() {
            match word.as_str() {
                "--cc" => congestion_control = words.next().unwrap_or_default(),
                _ => urls.push(word),
            }
        }
        if !known.contains(&congestion_control.as_str()) {
            return Err(format!("--cc is {}", known.join(" or ")).into());
        }
        if urls.is_empty() && !server {
            return Err("nothing to fetch".into());
        }
        let batches = batches(&test, &urls)?;
        Ok(Self { server, test, congestion_control, batches })
    }

    pub fn is(&self, test: &str) -> bool {
        self.test == test
    }

    /// Fetches batch after batch; what a connection leaves is for the next one in the tests that resume it.
    pub fn fetch<S>(&self, mut fetch: impl FnMut(&Batch, Option<S>) -> Outcome<Option<S>>) -> Outcome {
        let mut session = None;
        for batch in &self.batches {
            session = fetch(batch, session)?.filter(|_| self.resumes());
        }
        Ok(())
    }

    /// Whether the second connection uses what the first one got.
    pub fn resumes(&self) -> bool {
        self.is("resumption") || self.is("zerortt")
    }
}

fn batches(test: &str, urls: &[String]) -> Outcome<Vec<Batch>> {
    let parts: Vec<&[String]> = match test {
        "resumption" | "zerortt" if urls.len() > 1 => vec![&urls[..1], &urls[1..]],
        "multiconnect" => urls.chunks(1).collect(),
        _ => urls.chunks(urls.len().max(1)).collect(),
    };
    parts.into_iter().map(Batch::read).collect()
}

/// For each file the position, from 1, of the one that must have arrived before it is asked for; 0 for none.
pub fn after(files: usize) -> Outcome<Vec<usize>> {
    let Ok(words) = env::var("REQUESTS_AFTER") else { return Ok(vec![0; files]) };
    let places = words.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    if places.len() != files {
        return Err("REQUESTS_AFTER does not fit REQUESTS".into());
    }
    Ok(places)
}

impl Batch {
    fn read(urls: &[String]) -> Outcome<Self> {
        let mut batch = Self { host: String::new(), port: 443, paths: Vec::new() };
        for url in urls {
            let rest = url.strip_prefix("https://").and_then(|rest| rest.split_once('/'));
            let (authority, path) = rest.ok_or_else(|| format!("{url} is not a URL"))?;
            let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
            (batch.host, batch.port) = (host.to_owned(), port.parse()?);
            batch.paths.push(path.to_owned());
        }
        Ok(batch)
    }

    /// The server's address, and that of any interface in the same family.
    pub fn addresses(&self) -> Outcome<(SocketAddr, SocketAddr)> {
        let server = (self.host.as_str(), self.port).to_socket_addrs()?.next().ok_or("the server has no address")?;
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        Ok((server, any.parse()?))
    }
}

/// Runs an endpoint and ends the process, whatever the stack's own threads are at: 0 if all went well, else 1.
pub fn main(name: &str, known: &[&str], run: impl FnOnce(Task) -> Outcome) -> ! {
    let outcome = Task::read(known).and_then(run);
    if let Err(error) = &outcome {
        eprintln!("{name}: {error}");
    }
    // SAFETY: all that was written has been handed to the kernel.
    unsafe { libc::_exit(outcome.is_err().into()) }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The key log, to be appended to; None if none is wanted.
pub fn key_log() -> Outcome<Option<File>> {
    Ok(variable("SSLKEYLOGFILE").map(|path| OpenOptions::new().append(true).create(true).open(path)).transpose()?)
}

/// A new qlog in JSON text sequences; None if none is wanted.
pub fn qlog(name: &str) -> Outcome<Option<BufWriter<File>>> {
    let file = variable("QLOGDIR").map(|folder| File::create(Path::new(&folder).join(format!("{name}.sqlog"))));
    Ok(file.transpose()?.map(BufWriter::new))
}

/// HTTP/0.9's request of a file.
pub fn request(path: &str) -> Vec<u8> {
    format!("GET /{path}\r\n").into()
}

/// What is in the file below /www that a request names.
pub fn content(request: &[u8]) -> Outcome<Vec<u8>> {
    let path = std::str::from_utf8(request)?.trim_end().strip_prefix("GET /").ok_or("not a GET request")?;
    if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(format!("{path:?} leads out of /www").into());
    }
    fs::read(Path::new("/www").join(path)).map_err(|error| format!("{path:?}: {error}").into())
}

/// The file below /downloads to which a path is stored.
pub fn create(path: &str) -> Outcome<File> {
    let name = Path::new(path).file_name().ok_or("the URL names no file")?;
    Ok(File::create(Path::new("/downloads").join(name))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(test: &str, count: usize) -> Vec<usize> {
        let urls: Vec<String> = (0..count).map(|number| format!("https://server4:443/{number}")).collect();
        batches(test, &urls).unwrap().iter().map(|batch| batch.paths.len()).collect()
    }

    #[test]
    fn files_are_spread_over_connections_as_the_test_wants() {
        assert_eq!(paths("transfer", 3), [3]);
        assert_eq!(paths("multiconnect", 3), [1, 1, 1]);
        assert_eq!(paths("resumption", 3), [1, 2]);
        assert_eq!(paths("zerortt", 1), [1]);
        assert_eq!(paths("transfer", 0), [0; 0]);
    }

    #[test]
    fn a_url_is_taken_apart() {
        let read = |url: &str| Batch::read(&[url.into()]);
        let batch = |port| Batch { host: "server6".into(), port, paths: vec!["a/b".into()] };
        assert_eq!(read("https://server6/a/b").unwrap(), batch(443));
        assert_eq!(read("https://server6:4433/a/b").unwrap(), batch(4433));
        assert!(read("http://server6/a").is_err());
        assert!(read("https://server6").is_err());
    }

    #[test]
    fn nothing_outside_www_is_served() {
        for path in ["GET /../etc/passwd\r\n", "GET //etc/passwd\r\n", "PUT /a\r\n", "GET /\r\n"] {
            assert!(content(path.as_bytes()).is_err(), "{path}");
        }
    }
}
