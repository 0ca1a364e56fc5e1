"""Hosts on one machine: network, mount, process and host name namespaces of their own, joined by a bridge."""

from barograph.testing.hosts.host import Host
from barograph.testing.hosts.network import Hosts, open_hosts, why_no_hosts

__all__ = ["Host", "Hosts", "open_hosts", "why_no_hosts"]
