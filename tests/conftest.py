"""What all tests share."""

from hypothesis import settings

import quicsat.cli.entry_point  # noqa: F401 - the same garbage collection and threads as in the program

settings.register_profile("shared machine", settings(), deadline=None)
settings.load_profile("shared machine")
