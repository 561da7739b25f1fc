"""The table of negotiated facts: a row per implementation, role and fact."""

from dataclasses import replace

from quicsat.model.negotiated import Negotiated
from quicsat.model.results import Measurement
from quicsat.report.negotiated_tables import negotiated
from tests.results_builder import SAT, result_set, run_result


def test_rows_of_each_role() -> None:
    facts = Negotiated(1, 0x1303, "hq-interop", client={"initial_max_data": 65536}, server={"max_ack_delay": 10})
    found = [
        replace(run_result(1e6, repetition=1), measurement=Measurement({"goodput": 1e6}, negotiated=facts)),
        run_result(1e6, repetition=2),
    ]
    table = negotiated(result_set(found, repetitions=2), [SAT])
    rows = {row[:3]: row[3] for row in table.rows}
    assert rows["picoquic", "server", "max_ack_delay [ms]"] == "10"
    assert rows["quiche", "client", "initial_max_data [B]"] == "65536"
    assert rows["quiche", "client", "max_ack_delay [ms]"] == "25"
    assert rows["quiche", "client", "cipher"] == "ChaCha20-Poly1305"
    assert ("picoquic", "server", "initial_max_data [B]") in rows
    assert negotiated(result_set(found[1:], repetitions=2), [SAT]).rows == ()
