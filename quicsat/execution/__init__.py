"""From a plan to evidence: containers, testbeds, attempts, and what keeps a campaign alive."""
