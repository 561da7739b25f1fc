"""Values of a campaign: test cases, links, implementations, runs, evidence, outcomes."""
