"""The simulated cluster: CPU, routes between instances, changes, phases of topologies, triggers."""
