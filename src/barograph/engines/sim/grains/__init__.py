"""How rows are simulated: one by one (rows), or as amounts that flow (flows)."""
