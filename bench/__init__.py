"""What backs each performance claim. ``make bench ONLY=name`` runs one; each prints JSON and exits 1 on a missed bar."""
