"""Images of endpoints and simulator: recipes, lookup, pulls and builds."""
