#!/bin/bash
# Entry point: answers a test it does not know with 127, else becomes /endpoint/client or /endpoint/server.
# /endpoint/tests has one line per role: "client: handshake transfer ...".
set -uf
role=${ROLE:-}
if [[ $role != client && $role != server ]]; then
    echo "run_endpoint: ROLE is \"$role\", must be client or server" >&2
    exit 1
fi

supported=no
for test in $(sed -n "s/^$role://p" /endpoint/tests); do
    [[ $test == "${TESTCASE:-}" ]] && supported=yes
done
if [[ $supported == no ]]; then
    echo "run_endpoint: test \"${TESTCASE:-}\" is not supported as $role" >&2
    exit 127
fi

/setup.sh || exit 1
[[ -z ${QLOGDIR:-} ]] || mkdir -p "$QLOGDIR"

if [[ $role == server ]]; then
    # shellcheck disable=SC2086 # words are wanted here and below
    exec /endpoint/server ${SERVER_PARAMS:-}
fi
# The simulator listens here as soon as it forwards packets.
if ! timeout 30 bash -c 'until : <>/dev/tcp/sim/57832; do sleep 0.02; done' 2>/dev/null; then
    echo "run_endpoint: the simulator (sim:57832) did not answer within 30 s" >&2
    exit 1
fi
# shellcheck disable=SC2086
exec /endpoint/client ${CLIENT_PARAMS:-} ${REQUESTS:-}
