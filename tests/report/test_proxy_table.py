"""The table of proxies has the columns of Table 3 of the SATCOM paper."""

from dataclasses import replace

from quicsat.model.gateways import LINUX_ENDPOINTS, PEPS
from quicsat.report.proxy_table import proxies
from tests.results_builder import SAT, result_set


def test_rows_of_proxies_and_endpoints() -> None:
    own = replace(PEPS["B"], initial_window=20, congestion_control="bbr")
    links = {
        "N": replace(SAT.emulated, endpoint_tcp=LINUX_ENDPOINTS),
        "D": replace(SAT.emulated, pep=PEPS["D"], endpoint_tcp=LINUX_ENDPOINTS),
        "O": replace(SAT.emulated, pep=own),
    }
    cases = [replace(SAT, name=name, abbreviation=name, link=link) for name, link in links.items()]
    table = proxies(result_set(), [SAT, *cases])
    assert table.rows == (
        ("N", "none", 4_194_304, 6_291_456, 212_992, None, None),
        ("D", "D", 33_554_432, 33_554_432, 33_554_432, 100, "cubic"),
        ("O", "own", 4_194_304, 6_291_456, None, 20, "bbr"),
    )
    assert proxies(result_set(), [SAT]).rows == ()
