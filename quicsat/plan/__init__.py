"""From selected names to the ordered runs of a campaign, and how long they take."""
