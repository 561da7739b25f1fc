"""Results as tables and plot requests for terminal, files and website."""
