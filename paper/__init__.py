"""The report *arXiv 2202.08228 revisited*: its data set, the numbers computed from it, and the page."""
