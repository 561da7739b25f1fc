"""Reads and checks what users write: test cases, implementations.json, hosts files."""
