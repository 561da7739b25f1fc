"""From trace files to columns and series: what both ends of the link saw, packet by packet."""
