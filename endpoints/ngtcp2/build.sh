#!/bin/bash
# Builds the example programs of ngtcp2, for HTTP/3 (h3client, h3server) and for HTTP/0.9 (hqclient, hqserver).
# Upstream's own build has no HTTP/0.9 with GnuTLS: its TLS session offers HTTP/3 in any case.
set -eu
flags=(-O2 -DHAVE_ARPA_INET_H -DHAVE_NETINET_IN_H -DHAVE_NETINET_IP_H -DHAVE_NETINET_UDP_H -DHAVE_SYS_SOCKET_H
    -DHAVE_UNISTD_H -DHAVE_ENDIAN_H -DHAVE_BYTESWAP_H -DHAVE_ASM_TYPES_H -DHAVE_LINUX_NETLINK_H -DHAVE_LINUX_RTNETLINK_H
    -DHAVE_DECL_BE64TOH=1 -DHAVE_DECL_BSWAP_64=1 -DENABLE_EXAMPLE_GNUTLS -DWITH_EXAMPLE_GNUTLS
    -Ithird-party -Ithird-party/urlparse)

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
for program in client h09client; do
    change $program.cc 'ev_run(EV_DEFAULT, 0);' '& if (!c.should_exit()) return -1;'
done
# libstdc++ takes random numbers from the processor, which the seed of a run in virtual time does not determine.
change util.cc 'std::random_device rd;' 'std::random_device rd("/dev/urandom");'

mkdir -p objects
for role in client server; do
    sed 's/H3_ALPN_V1/HQ_ALPN_V1/g' examples/tls_${role}_session_gnutls.cc >examples/tls_${role}_session_hq.cc
done
for part in h09client h09server client server client_base server_base debug util shared http siphash util_gnutls \
    tls_{client,server}_{context,session}_gnutls tls_{client,server}_session_hq tls_session_base_gnutls; do
    echo "g++ -std=c++20 ${flags[*]} -c -o objects/$part.o examples/$part.cc"
done | xargs -P "$(nproc)" -I{} sh -c {}
for part in http-parser/http_parser urlparse/urlparse; do
    gcc "${flags[@]}" -c -o "objects/${part#*/}.o" "third-party/$part.c"
done

# link PROGRAM ROLE MAIN SESSION
link() {
    local parts=("$3" "$2_base" debug util shared util_gnutls "tls_$2_context_gnutls" "$4" tls_session_base_gnutls
        http_parser urlparse)
    [[ $2 == client ]] || parts+=(http siphash)
    parts=("${parts[@]/#/objects/}")
    g++ -s -o "$1" "${parts[@]/%/.o}" -l:libngtcp2_crypto_gnutls.a -l:libngtcp2.a -lgnutls -lev -lnghttp3
}
for role in client server; do
    link h3$role $role $role tls_${role}_session_gnutls
    link hq$role $role h09$role tls_${role}_session_hq
done
