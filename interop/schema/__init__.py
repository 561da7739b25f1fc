"""What results look like on disk: the lines of the journal, result.json with its JSON Schema, and its summary."""
