"""The engines behind one port: Spark and the simulator."""
