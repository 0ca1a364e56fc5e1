"""What backs each performance claim: ``make bench ONLY=name``. JSON on stdout, exit 1 when a bar is missed."""
