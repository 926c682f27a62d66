"""The command line: parse, call, print; no algorithm.

Modules of commands import nothing heavy at the top, so that ``--help`` is fast.
"""

from .app import Commands
from .demo import demo
from .export import export
from .fit import fit
from .impute import impute
from .methods import methods
from .path import path
from .predict import predict
from .relate import relate
from .report import report
from .schema import schema
from .segment import segment
from .warm_up import warm_up

main = Commands(
    "countless",
    help="Cluster tables, graphs and pictures without choosing the number of clusters.",
    commands=[
        fit,
        predict,
        report,
        path,
        relate,
        impute,
        segment,
        export,
        methods,
        schema,
        demo,
        warm_up,
    ],
)

__all__ = ["main"]
