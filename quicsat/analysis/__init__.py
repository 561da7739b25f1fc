"""From columns and evidence to numbers, verdicts and reasons."""
