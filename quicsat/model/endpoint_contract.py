"""What the endpoint contract of the QUIC Interop Runner fixes; docs/reference/endpoint-contract.md."""

UNSUPPORTED_STATUS = 127
"""Exit status by which an endpoint says that it does not know a test."""
