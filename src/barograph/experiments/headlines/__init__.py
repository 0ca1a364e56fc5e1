"""The results the papers state, checked on the papers' own policies in the simulator. One file for each paper."""
