"""Steering a run by a policy: the controller process, the first placement, fixed shares, worker sizes."""
