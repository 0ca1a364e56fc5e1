"""CPU limits of instances, written into control groups."""
