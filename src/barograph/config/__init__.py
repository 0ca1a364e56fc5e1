"""Every option of Barograph, declared once: its name, type, unit, default, range and meaning.

Flags, ``barograph.toml``, ``spark.barograph.*`` keys, the reference page and the defaults of values come from here.
"""

from barograph.config.declared import OPTIONS, default
from barograph.config.option import Kind, Option
from barograph.config.resolved import Config, resolve

__all__ = ["OPTIONS", "Config", "Kind", "Option", "default", "resolve"]
