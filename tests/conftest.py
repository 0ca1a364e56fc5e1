"""Settings for all tests."""

from hypothesis import settings

# How long one example takes depends on what else the machine does; speed is measured in bench/.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")
