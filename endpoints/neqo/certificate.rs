//! Whether the server is the one that the client wants: its certificates against the contract's authority.

use std::error::Error;

use clap::Parser as _;
use neqo_crypto::{agent::CertificateInfo, AuthenticationStatus};
use rustls_pki_types::{pem::PemObject as _, CertificateDer, ServerName, UnixTime};
use url::Url;
use webpki::{anchor_from_trusted_cert, EndEntityCert, KeyUsage, ALL_VERIFICATION_ALGS};

const AUTHORITY: &str = "/certs/ca.pem";

/// What to say of the certificates that the server has sent; all URLs are of one server.
pub fn judge(sent: Option<CertificateInfo>) -> AuthenticationStatus {
    match check(sent, &super::Args::parse().urls) {
        Ok(()) => AuthenticationStatus::Ok,
        Err(error) => {
            eprintln!("neqo: the server's certificate is refused: {error}");
            AuthenticationStatus::Unknown
        }
    }
}

fn check(sent: Option<CertificateInfo>, urls: &[Url]) -> Result<(), Box<dyn Error>> {
    let sent = sent.ok_or("it has sent none")?;
    let chain: Vec<_> = sent.iter().map(|certificate| CertificateDer::from(certificate.to_vec())).collect();
    let (first, others) = chain.split_first().ok_or("it has sent none")?;
    let host = urls.first().and_then(Url::host_str).ok_or("no host was asked for")?;
    let authority = CertificateDer::from_pem_file(AUTHORITY)?;
    let anchors = [anchor_from_trusted_cert(&authority)?];
    let (leaf, usage) = (EndEntityCert::try_from(first)?, KeyUsage::server_auth());
    leaf.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors, others, UnixTime::now(), usage, None, None)?;
    Ok(leaf.verify_is_valid_for_subject_name(&ServerName::try_from(host)?)?)
}
