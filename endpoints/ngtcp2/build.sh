#!/bin/bash
# Builds the library of ngtcp2 and its example programs, for HTTP/3 (h3client, h3server) and HTTP/0.9 (hqclient, hqserver).
# Upstream's own build has no HTTP/0.9 with GnuTLS: its TLS session offers HTTP/3 in any case.
set -eu

# change FILE OLD NEW: what the examples lack as a client.
change() {
    grep -qF "$2" "examples/$1"
    sed -i "s|$2|$3|" "examples/$1"
}
# As they are, they check no certificate, and their exit status is 0 also when files are missing.
change tls_client_context_gnutls.cc 'set_x509_system_trust(cred_)' \
    'set_x509_trust_file(cred_, "/certs/ca.pem", GNUTLS_X509_FMT_PEM)'
change tls_client_session_gnutls.cc 'gnutls_session_set_ptr(session_, client->conn_ref());' \
    '& gnutls_session_set_verify_cert(session_, remote_addr, 0);'
change client.cc 'ev_run(EV_DEFAULT, 0);' '& if (!c.should_exit()) return std::unexpected{Error::IO};'
# libstdc++ takes random numbers from the processor, which the seed of a run in virtual time does not determine.
change util.cc 'std::random_device rd;' 'std::random_device rd("/dev/urandom");'

# The library for HTTP/3 is linked statically: the image has only what stable Debian has.
./configure --quiet --disable-shared --disable-dependency-tracking --with-gnutls --without-openssl --without-jemalloc \
    CFLAGS=-O2 CXXFLAGS=-O2 LIBNGHTTP3_CFLAGS="-I$PWD/third-party" LIBNGHTTP3_LIBS=-l:libnghttp3.a
for folder in third-party lib crypto; do
    make -s -j "$(nproc)" -C "$folder"
done
mkdir out
# programs FOLDER PROTOCOL
programs() {
    make -s -j "$(nproc)" -C "$1" gtlsclient gtlsserver
    for role in client server; do
        strip -o "out/$2$role" "$1/gtls$role"
    done
}
programs examples h3
# Most objects are those of HTTP/3, too.
cp -a examples hq
sed -i -e 's/http3_\(client\|server\)_proto_codec/hq_\1_proto_codec/g' -e 's/HTTP3_PROTO_CODEC/HQ_PROTO_CODEC/g' \
    -e 's|[^ ]*/liburlparse.la|& ../third-party/libhttp-parser.la|' hq/Makefile
sed -i 's/H3_ALPN_V1/HQ_ALPN_V1/g' hq/tls_{client,server}_session_gnutls.cc
rm hq/gtls{client,server} hq/gtlsclient-client.o hq/gtlsserver-server.o hq/gtls*-tls_*_session_gnutls.o
programs hq hq
