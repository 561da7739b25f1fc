# neqo's client takes any certificate, and overlooks that a stream is reset.
s/^use neqo_crypto::{AuthenticationStatus, /use neqo_crypto::{/
s/(AuthenticationStatus::Ok,/(super::certificate::judge(client.peer_certificate()),/
s/^ *ConnectionEvent::ResumptionToken(/ConnectionEvent::RecvStreamReset { .. } => return Err(super::Error::ArgumentError("the server reset a stream")),\n&/
s/^ *Http3ClientEvent::ResumptionToken(/Http3ClientEvent::Reset { .. } => return Err(super::Error::ArgumentError("the server reset a stream")),\n&/
