#!/bin/bash
# Sends everything of eth0 through the simulator. Run again in the same network namespace it changes nothing.
set -u
interface=eth0

mkdir -p /logs/qlog

# A veth hands out unfinished checksums, which the simulator would pass on and the receiver reject.
ethtool -K "$interface" tx off >/dev/null || echo "setup: checksum offload of $interface could not be switched off" >&2

# "onlink": on a second run the route to the gateway's own network is gone already.
read -r _ _ _ ipv4 _ < <(ip -4 -o address show dev "$interface" scope global)
case ${ipv4:=} in
193.167.*/24)
    network=${ipv4%.*}
    ip -4 route replace 193.167.0.0/16 via "$network.2" dev "$interface" onlink || exit 1
    ip -4 route del "$network.0/24" dev "$interface" 2>/dev/null
    ;;
esac

read -r _ _ _ ipv6 _ < <(ip -6 -o address show dev "$interface" scope global)
case ${ipv6:=} in
fd00:cafe:cafe:*/64)
    network=${ipv6%:*}
    ip -6 route replace fd00:cafe:cafe::/48 via "$network:2" dev "$interface" onlink || exit 1
    ip -6 route del "$network:/64" dev "$interface" 2>/dev/null
    ;;
esac
exit 0
