"""Settings that all tests share."""

from hypothesis import settings

# The same draws in every run, and no deadline: the first call of a kernel compiles it.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
