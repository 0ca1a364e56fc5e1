"""Orders to the plug-in: where instances run, which sources read, how long epochs last."""
