//! How MsQuic is set up: settings and certificates, and the parameters that have no safe wrapper.

use std::io::Write;
use std::mem::zeroed;

use contract::{Outcome, Task, ALPN, AUTHORITY, CERTIFICATES, IDLE, KEY, WINDOW};
use msquic::ffi::{HQUIC, QUIC_PARAM_CONN_TLS_SECRETS, QUIC_TLS_SECRETS};
use msquic::ServerResumptionLevel::{ResumeAndZerortt, ResumeOnly};
use msquic::{
    AllowedCipherSuiteFlags, Api, CertificateFile, Configuration, Connection, Credential, CredentialConfig,
    Registration, Settings, Status,
};

/// QUIC_PARAM_CONN_FORCE_KEY_UPDATE, which only the stack's private header names.
pub const FORCE_KEY_UPDATE: u32 = 0x8500_0000;

pub fn configure(registration: &Registration, task: &Task) -> Outcome<Configuration> {
    let mut settings = Settings::new()
        .set_IdleTimeoutMs(IDLE.into())
        .set_StreamRecvWindowDefault(WINDOW)
        .set_ConnFlowControlWindow(2 * WINDOW)
        .set_PeerBidiStreamCount(if task.server { 100 } else { 0 })
        .set_CongestionControlAlgorithm((task.congestion_control == "bbr").into());
    if task.is("ecn") {
        settings = settings.set_EcnEnabled();
    }
    if task.server {
        let early = task.is("zerortt");
        settings = settings.set_ServerResumptionLevel(if early { ResumeAndZerortt } else { ResumeOnly });
    }
    let configuration = Configuration::open(registration, &[ALPN.into()], Some(&settings))?;
    let mut credential = if task.server {
        let file = CertificateFile::new(KEY.into(), CERTIFICATES.into());
        CredentialConfig::new().set_credential(Credential::CertificateFile(file))
    } else {
        CredentialConfig::new_client().set_ca_certificate_file(AUTHORITY.into())
    };
    if task.is("chacha20") {
        credential = credential.set_allowed_cipher_suites(AllowedCipherSuiteFlags::CHACHA20_POLY1305_SHA256);
    }
    configuration.load_credential(&credential)?;
    Ok(configuration)
}

/// Sets a parameter of the library (null) or of a handle that is valid.
pub fn set<T>(handle: HQUIC, parameter: u32, values: &[T]) -> Result<(), Status> {
    // SAFETY: the values are as long as said.
    unsafe { Api::set_param(handle, parameter, size_of_val(values) as u32, values.as_ptr().cast()) }
}

/// Lets the stack fill in a connection's secrets; they stay valid for good, since it may do so at any time.
pub fn keep_secrets(connection: &Connection) -> Result<&'static QUIC_TLS_SECRETS, Status> {
    // SAFETY: all zero is a valid value.
    let secrets: &mut [QUIC_TLS_SECRETS; 1] = Box::leak(Box::new([unsafe { zeroed() }]));
    // SAFETY: the handle is valid.
    set(unsafe { connection.as_raw() }, QUIC_PARAM_CONN_TLS_SECRETS, secrets)?;
    Ok(&secrets[0])
}

/// Appends the secrets of a connection whose handshake is done to the key log.
pub fn log_secrets(secrets: &QUIC_TLS_SECRETS) -> Outcome {
    let Some(mut file) = contract::key_log()? else { return Ok(()) };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (random, length, mut lines) = (hex(&secrets.ClientRandom), secrets.SecretLength.into(), String::new());
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
    Ok(file.write_all(lines.as_bytes())?)
}
