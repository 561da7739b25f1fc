"""Figures: one module each, whose ``table`` picks numbers without matplotlib and whose ``draw`` draws them."""
