"""The core of quicsat: plan, execute, analyse, store and show transfers over satellite links."""
