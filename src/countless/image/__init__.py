"""Image segmentation, with scikit-image: ``pip install 'countless[image]'``."""

from .picture import read_picture
from .scores import Scores, compare
from .segment import Segmentation, segment
from .truth import read_truth

__all__ = ["Scores", "Segmentation", "compare", "read_picture", "read_truth", "segment"]
