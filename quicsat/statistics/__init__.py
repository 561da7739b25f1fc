"""From the results of many runs to samples, tests and tables; pure."""
