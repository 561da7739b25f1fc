"""The report docs/paper: each module has one subject; scripts/paper_report.py is the command."""
