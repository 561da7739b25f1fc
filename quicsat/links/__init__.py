"""Link back ends: they carry the packets between two endpoints."""
