"""What touches the world: Spark, or the simulator, behind one port."""
