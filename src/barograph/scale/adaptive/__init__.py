"""Barograph's own scaler: CPU shares follow the load; instances are added if one instance cannot use more CPU."""
