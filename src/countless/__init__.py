"""Clustering without choosing k."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countless.hard.dp_means import DPMeans
    from countless.hard.graph import GraphDPMeans
    from countless.hard.hdp_means import HDPMeans, hdp_penalties
    from countless.hard.kernel import KernelDPMeans
    from countless.hard.kernel_hdp import KernelHDPMeans
    from countless.hard.penalty import farthest_first_penalty, penalty_path
    from countless.hard.spectral import SpectralDPMeans

__version__ = "0.1.0.dev0"

__all__ = [
    "DPMeans",
    "GraphDPMeans",
    "HDPMeans",
    "KernelDPMeans",
    "KernelHDPMeans",
    "SpectralDPMeans",
    "__version__",
    "farthest_first_penalty",
    "hdp_penalties",
    "penalty_path",
]

# Where each public name lives; a name is imported when it is first asked for.
_HOME = {
    "DPMeans": "countless.hard.dp_means",
    "GraphDPMeans": "countless.hard.graph",
    "HDPMeans": "countless.hard.hdp_means",
    "KernelDPMeans": "countless.hard.kernel",
    "KernelHDPMeans": "countless.hard.kernel_hdp",
    "SpectralDPMeans": "countless.hard.spectral",
    "farthest_first_penalty": "countless.hard.penalty",
    "hdp_penalties": "countless.hard.hdp_means",
    "penalty_path": "countless.hard.penalty",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'countless' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
