# tquic's client checks certificates only if it is told to, for which it has no option, and overlooks that a stream is reset.
s/let tls_config = TlsConfig/let mut tls_config = TlsConfig/
s|^ *config.set_tls_config|tls_config.set_verify(true); tls_config.set_ca_certs("/certs/ca.pem")?; &|
/fn recv_http09_responses/,/^    }/ s/while let Ok(\(.*\)) = \(conn.stream_read(.*)\) {/while let Some(\1) = match \2 {\
            Err(Error::StreamReset(_)) => { eprintln!("tquic: a stream was reset"); std::process::exit(1) }\
            other => other.ok(),\
        } {/
