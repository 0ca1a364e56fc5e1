"""What the bench of Kafka measures with: the CPU of each kind of process, and the broker's own word on what is due."""
