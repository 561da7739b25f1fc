"""Elements of emulated links in three forms: YAML of a test case, arguments of the simulator, and words of tables."""

import pytest

from quicsat.links.simulator_arguments import scenario
from quicsat.model.link_format import format_link
from tests.config.my_yaml import extending, read
from tests.ready import ready_test_cases

SAT = ready_test_cases()["sat"].emulated
USUAL = scenario(SAT, 7).split()


def elements(text: str) -> list[tuple[str, ...]]:
    """Three lines each."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return list(zip(lines[::3], lines[1::3], lines[2::3], strict=True))


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("cases"))


LINKS = elements("""
    rate: 5 Mbit/s, return rate: 1 Mbit/s
        --forward-data-rate=5000000bps --return-data-rate=1000000bps
        5.00 / 1.00 Mbit/s, RTT 600.0 ms, queue 25 packets, no loss
    rate: 5 Mbit/s, forward rate: 6 Mbit/s
        --forward-data-rate=6000000bps --return-data-rate=5000000bps
        6.00 / 5.00 Mbit/s, RTT 600.0 ms, queue 25 packets, no loss
    scenario: simple-p2p, rate: 1 Mbit/s, delay: 12.5 ms
        simple-p2p --delay=12.5ms --bandwidth=1000000bps --queue=25
        1.00 Mbit/s, RTT 25.0 ms, queue 25 packets, no loss
    forward delay: 10 ms
        --forward-delay=10ms
        20.00 / 2.00 Mbit/s, RTT 310.0 ms, queue 25 packets, no loss
    rtt: 560 ms
        --forward-delay=280ms --return-delay=280ms
        20.00 / 2.00 Mbit/s, RTT 560.0 ms, queue 25 packets, no loss
    forward queue: 7, return queue: 100 packets
        --forward-queue=7 --return-queue=100
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 7 / 100 packets, no loss
    queue: 1 BDP
        --forward-queue=1000 --return-queue=100
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 1000 / 100 packets, no loss
    rtt: 300 ms, forward queue: 0.5 BDP
        --forward-delay=150ms --forward-queue=250 --return-delay=150ms
        20.00 / 2.00 Mbit/s, RTT 300.0 ms, queue 250 / 25 packets, no loss
    forward queue: 0.01 BDP, rate: 10 kbit/s
        --forward-data-rate=10000bps --forward-queue=1 --return-data-rate=10000bps
        0.01 Mbit/s, RTT 600.0 ms, queue 1 packet / 25 packets, no loss
    queue mode: paper
        --queue-mode=paper
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets (as QIR-SE had it), no loss
    return queue: 64 KiB
        --queue-discipline-to-server=drop-tail --queue-limit-to-server=65536B
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 / drop-tail 64 KiB, no loss
    queue: {discipline: codel, limit: 1 MiB, mark above: 0.5 ms}, return queue: 25
        --queue-discipline-to-client=codel --queue-limit-to-client=1048576B --queue-mark-above-to-client=0.5ms
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue codel 1 MiB (marks above 0.5 ms) / 25 packets, no loss
    return queue: {discipline: codel, limit: 100, interval: 100 ms, ecn: true}
        --queue-discipline-to-server=codel --queue-limit-to-server=100p --queue-interval-to-server=100ms --queue-ecn-to-server
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 / codel 100 packets (interval 100.0 ms, ECN), no loss
    return queue: {discipline: red, limit: 90, minimum: 10, maximum: 30 packets, probability: 5 %, weight: 0.01}
        --queue-discipline-to-server=red --queue-limit-to-server=90p --red-minimum-to-server=10 --red-maximum-to-server=30 --red-probability-to-server=0.05 --red-weight-to-server=0.01
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 / red 90 packets (10 to 30 packets, at most 5 %, weight 0.01), no loss
    return queue: {discipline: pie, limit: 50, target: 15 ms}
        --queue-discipline-to-server=pie --queue-limit-to-server=50p --queue-target-to-server=15ms
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 / pie 50 packets (target 15.0 ms), no loss
    loss: 2 %
        --drop-rate-to-client=2 --drop-rate-to-server=2
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 2 %
    loss: 0.1 %, return loss: 0 %
        --drop-rate-to-client=0.1
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 0.10 % / none
    return loss: {rate: 30 %, longest burst: 3}
        --drop-rate-to-server=30 --drop-burst-to-server=3
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss none / 30 % (at most 3 in a row)
    return loss: {good to bad: 0.017, bad to good: 93.5 %}
        --good-bad-prob-to-server=0.017 --bad-good-prob-to-server=0.935
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss none / 1.79 % in bursts of 1.07 packets
    loss: {rate: 50 %, mean burst: 2}, return loss: {rate: 0 %, mean burst: 2}
        --good-bad-prob-to-client=0.5 --bad-good-prob-to-client=0.5
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 50 % in bursts of 2 packets / none
    forward loss: 0 %, return loss: {good to bad: 0.5, bad to good: 0}
        --good-bad-prob-to-server=0.5 --bad-good-prob-to-server=0
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss none / 100 % without end
    forward loss: {good to bad: 0.01, bad to good: 0.2, loss in good: 0.1 %, loss in bad: 50 %}
        --good-bad-prob-to-client=0.01 --bad-good-prob-to-client=0.2 --loss-in-good-to-client=0.001 --loss-in-bad-to-client=0.5
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 2.48 % in bursts of 1.63 packets / none
    scenario: drop-rate, loss: {rate: 30 %, longest burst: 3}, return loss: 2 %
        drop-rate --rate_to_client=30 --burst_to_client=3 --rate_to_server=2
        20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 30 % (at most 3 in a row) / 2 %
    client side: {delay: 5 ms, return delay: 0 ms, return loss: {good to bad: 0.1, bad to good: 0.5}}
        --client-side-delay-to-client=5ms --client-side-delay-to-server=0ms --client-side-good-bad-prob-to-server=0.1 --client-side-bad-good-prob-to-server=0.5
        20.00 / 2.00 Mbit/s, RTT 605.0 ms, queue 25 packets, no loss, 5.0 ms / 0.0 ms and loss none / 16.67 % in bursts of 2 packets at the client's side
""")  # noqa: E501
IMPAIRMENTS = elements("""
    scenario: corrupt-rate, corruption: 2 %
        corrupt-rate --rate_to_client=2 --rate_to_server=2
        corruption 2 %
    scenario: corrupt-rate, corruption: {rate: 30 %, longest burst: 3}, return corruption: {rate: 1 %, mode: loss}
        corrupt-rate --rate_to_client=30 --burst_to_client=3 --rate_to_server=1 --mode-to-server=loss
        corruption 30 % (at most 3 in a row) / 1 % as loss
    scenario: droplist, return drops: [2, 3]
        droplist --drops_to_server=2,3
        drops none / no. 2, 3
    scenario: droplist, drops: 1
        droplist --drops_to_client=1 --drops_to_server=1
        drops no. 1
    scenario: droplist, forward drops: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
        droplist --drops_to_client=1,2,3,4,5,6,7,8,9,10
        drops no. 1, 2, 3, 4, 5, 6, 7, 8 and 2 more / none
    scenario: blackhole, blackhole: {on: 5 s, off: 2 s}
        blackhole --on=5000ms --off=2000ms --repeat=1 --direction=both --timers-from=first-packet
        dark for 2.0 s after 5.0 s
    scenario: blackhole, blackhole: {on: 500 ms, off: 2 s, repeat: 3, direction: return, from: start}
        blackhole --on=500ms --off=2000ms --repeat=3 --direction=toserver --timers-from=start
        dark return for 2.0 s after 500.0 ms, 3 times of the simulation
    scenario: rebind, rebind: {first: 1 s}
        rebind --first-rebind=1000ms --timers-from=first-packet
        new client port after 1.0 s
    scenario: rebind, rebind: {first: 10 ms, period: 5 s, address: true, from: first packet}
        rebind --first-rebind=10ms --rebind-freq=5000ms --rebind-addr --timers-from=first-packet
        new client address and port after 10.0 ms, then every 5.0 s
    scenario: tcp-cross-traffic, cross traffic: {}
        tcp-cross-traffic --cross-port=5001
        beside a TCP flow (cubic)
    scenario: tcp-cross-traffic, cross traffic: {congestion control: reno}
        tcp-cross-traffic --cross-port=5001
        beside a TCP flow (reno)
    jitter: 5 ms, return jitter: {size: 1 ms, shape: normal, overtake: true}
        --jitter-to-client=5ms --jitter-shape-to-client=uniform --jitter-to-server=1ms --jitter-shape-to-server=normal --jitter-overtakes-to-server
        jitter uniform 5.0 ms / normal 1.0 ms with overtaking
    jitter: {size: 1 ms, shape: exponential}, forward jitter: 0 ms
        --jitter-to-server=1ms --jitter-shape-to-server=exponential
        jitter none / exponential 1.0 ms
    reordering: {rate: 1 %, delay: 20 ms}, return reordering: {rate: 2 %, delay: 1 s, gap: 3}
        --reorder-rate-to-client=1 --reorder-delay-to-client=20ms --reorder-rate-to-server=2 --reorder-delay-to-server=1000ms --reorder-gap-to-server=3
        reordering 1 % by 20.0 ms / 2 % by 3 packets, at most 1.0 s
    duplication: 0.5 %, forward duplication: 0 %
        --duplicate-rate-to-server=0.5
        duplication none / 0.50 %
    udp cross traffic: 5 Mbit/s, return udp cross traffic: 0 bit/s
        --udp-cross-rate-to-client=5000000bps --udp-cross-size-to-client=540
        beside UDP packets of 5.00 Mbit/s in packets of 540 B / none
    return udp cross traffic: {rate: 1 Mbit/s, packet size: 28 B, start: 20 s}
        --udp-cross-rate-to-server=1000000bps --udp-cross-size-to-server=28 --udp-cross-start-to-server=20000ms
        beside UDP packets none / of 1.00 Mbit/s in packets of 28 B after 20.0 s
    client side: {forward loss: {rate: 1 %, longest burst: 2}}
        --client-side-delay-to-client=0ms --client-side-drop-rate-to-client=1 --client-side-drop-burst-to-client=2 --client-side-delay-to-server=0ms
        loss 1 % (at most 2 in a row) / none at the client's side
    client side: {forward rate: 50 Mbit/s, forward queue: 100}
        --client-side-delay-to-client=0ms --client-side-data-rate-to-client=50000000bps --client-side-queue-to-client=100 --client-side-delay-to-server=0ms
        50.00 Mbit/s / any rate, queue 100 packets / none and no loss at the client's side
    client side: {forward jitter: 5 ms, rate: 20 Mbit/s, queue: 9, forward queue: {discipline: codel, limit: 9}}
        --client-side-delay-to-client=0ms --client-side-jitter-to-client=5ms --client-side-jitter-shape-to-client=uniform --client-side-data-rate-to-client=20000000bps --client-side-queue-discipline-to-client=codel --client-side-queue-limit-to-client=9p --client-side-delay-to-server=0ms --client-side-data-rate-to-server=20000000bps --client-side-queue-to-server=9
        20.00 Mbit/s, queue codel 9 / 9 packets, jitter uniform 5.0 ms / none and no loss at the client's side
    pep: D
        -
        PEP D
    pep: {send buffer: 4 MiB, receive buffer: 6 MiB, initial window: 32}
        -
        PEP (buffers 4 MiB / 6 MiB, initial window 32, cubic)
    endpoint tcp: {fast open: true}
        -
        endpoints' TCP buffers 4 MiB / 6 MiB, TCP Fast Open
    vpn: wireguard
        -
        WireGuard over UDP (MTU 1420)
    vpn: {program: openvpn, transport: tcp, nagle: false}
        --protocol=tcp
        OpenVPN over TCP (MTU 1420, initial window 10, cubic, TCP_NODELAY)
    vpn: {program: openvpn, transport: tcp, send buffer: 2 MiB}
        --protocol=tcp
        OpenVPN over TCP (MTU 1420, buffers 2 MiB / 6 MiB, initial window 10, cubic)
""")  # noqa: E501


@pytest.mark.parametrize(("link", "arguments", "words"), LINKS)
def test_links(link: str, arguments: str, words: str) -> None:
    [mine] = read(extending("sat", link))
    told = scenario(mine.emulated, 7).split()
    assert {*told} - {*USUAL} == {*arguments.split()}
    names = [word.partition("=")[0] for word in told]
    assert len({*names}) == len(names)
    assert ("--queue-discipline-to-server" in names) is ("--return-queue" not in names and "--queue" not in names)
    assert format_link(mine.emulated) == words


@pytest.mark.parametrize(("link", "arguments", "words"), IMPAIRMENTS)
def test_impairments(link: str, arguments: str, words: str) -> None:
    [mine] = read(extending("sat", link))
    told = scenario(mine.emulated, 7).split()
    assert {*told} - {*USUAL} == {*arguments.split()} - {"-"}
    assert {*USUAL[1:]} <= {*told}
    assert format_link(mine.emulated) == f"{format_link(SAT)}, {words}"
