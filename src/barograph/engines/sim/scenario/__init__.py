"""What is simulated: reading, checking and listing scenarios. The scenario files are in ``files/``."""
