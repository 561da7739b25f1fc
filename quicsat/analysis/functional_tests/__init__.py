"""Functional tests, a module each: its rule by the RFCs, and that of the QUIC Interop Runner beside it."""
