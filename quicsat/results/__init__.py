"""The results directory: journal, result.json and its JSON Schema, merge, prune, import and export."""
