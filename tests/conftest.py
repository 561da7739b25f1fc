"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("shared machine", settings(), deadline=None)
settings.load_profile("shared machine")
