"""How values are written that are more than a word or a number: each is parsed here, so that all readers agree."""
