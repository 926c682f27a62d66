"""``countless segment``: read a picture, cut it into segments, draw them, write them down."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import as_given, force_option, json_option, quiet_option, seed_option

if TYPE_CHECKING:
    import numpy as np

    from ..image.scores import Scores
    from .screen import Screen

FILES = ("segments.png", "colors.png", "labels.png", "labels.npy", "run.json")
MOST_SHOWN = 20


@click.command(short_help="Cut a picture into segments.")
@click.argument("picture")
@click.option(
    "--method",
    type=click.Choice(["affinity", "graph", "ncut"]),
    default="affinity",
    show_default=True,
    help="Affinity propagation, graph DP-means, or scikit-image's normalised cuts.",
)
@click.option(
    "--prior",
    type=click.Choice(["dp", "pitman-yor", "none"]),
    help="Which sizes of segments are likely, for affinity; dp by default, a Dirichlet process.",
)
@click.option(
    "--superpixels",
    type=click.IntRange(min=1),
    default=250,
    show_default=True,
    metavar="N",
    help="Into about how many patches the picture is cut first; segments are made of them.",
)
@click.option(
    "--scale",
    type=float,
    metavar="X",
    help="How strongly the picture speaks against the prior; the higher, the more segments.",
)
@click.option("--color-weight", type=float, metavar="X", help="What colours count; 10 by default.")
@click.option("--edge-weight", type=float, metavar="X", help="What edges count; 4 by default.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set any other parameter of the method, such as preference, penalty or threshold.",
)
@click.option(
    "--truth",
    metavar="FILE",
    multiple=True,
    help="Segments that people drew, to be compared afterwards: .npy, .npz, .png or BSDS's .mat.",
)
@click.option(
    "--labels",
    type=click.Choice(["png", "npy"]),
    default="png",
    show_default=True,
    help="How to write the segment of each pixel: grey levels of 16 bits, or an array.",
)
@click.option(
    "--out",
    "--out-dir",
    "out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where results go; by default the picture's name with '-segments'.",
)
@seed_option
@json_option
@quiet_option
@force_option
def segment(picture: str, **options: Any) -> None:
    """Cut PICTURE, a file that Pillow reads, into segments without saying how many.

    Writes segments.png (their outlines), colors.png (their mean colours), labels.png or labels.npy
    (the segment of each pixel) and run.json. Needs pip install 'countless[image]'.
    """
    from ..io.errors import InputError
    from ..io.write import check_free
    from .screen import Screen

    out = options["out"] or Path(f"{Path(picture).name.split('.')[0] or 'picture'}-segments")
    check_free(out, FILES, options["force"])
    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    try:
        _segment(screen, picture, out, options)
    except (ImportError, ValueError, MemoryError) as error:
        raise InputError(str(error) or "there is not enough memory") from error


def _segment(screen: "Screen", name: str, out: Path, options: dict[str, Any]) -> None:
    from ..image.picture import read_picture
    from ..image.scores import compare
    from ..image.segment import check_weights, cut_patches, make_method, spread
    from ..image.similarity import similarity
    from ..image.truth import read_truth
    from ..io.errors import InputError
    from ..io.table import counted
    from ..io.write import write_directory
    from .progress import follow
    from .registry import parse_settings
    from .run import Request, run_record
    from .screen import to_json

    method, prior = options["method"], options["prior"]
    if prior is not None and method != "affinity":
        raise InputError(f"--prior is for affinity, not for {method}")
    weights = {key: options[key] for key in ("color_weight", "edge_weight")}
    weights = check_weights(**{key: x for key, x in weights.items() if x is not None})
    settings = parse_settings(options["settings"])

    with screen.step("read", f"reading {name}"):
        image, sha256 = read_picture(name)
        truths = [truth for path in options["truth"] for truth in read_truth(path)]
    height, width = image.shape[:2]
    for truth in truths:
        if truth.shape != (height, width):
            raise InputError(
                f"--truth has {truth.shape[1]} x {truth.shape[0]} pixels, "
                f"and {name} {width} x {height}"
            )
    with screen.step("superpixels", "cutting the picture into superpixels"):
        patches = cut_patches(image, options["superpixels"])
    seed = options["seed"]
    made = make_method(method, prior or "dp", patches.n, options["scale"], settings, seed)
    screen.show(f"{Path(name).name}: {width} x {height} pixels, {counted(patches.n, 'superpixel')}")
    with screen.step("similarity", "comparing superpixels"):
        similarities = made.matrix(similarity(patches, **weights))
    with screen.step("fit", f"{method} on {counted(patches.n, 'superpixel')}") as say:
        if screen.err.is_terminal:
            follow(made.estimator, say, similarities.shape)
        labels = spread(patches, made.estimator.fit_predict(similarities), height, width)
    result = _result(made, image, labels, patches.n)
    screen.show(f"{counted(result['n_segments'], 'segment')}, found by {method}", "")
    screen.show(_view(result["segments"]))
    if truths:
        with screen.step("compare", "comparing with what people drew"):
            scores = compare(labels, truths)
        result["scores"] = scores
        screen.show("", _told(scores))
    with screen.step("draw", "drawing"):
        files = _drawn(image, labels, options["labels"])
    arguments = as_given(picture=name, **options)
    request = Request("segment", method, arguments, seed, out, options["force"], plot=False)
    source = {"source": Path(name).name, "sha256": sha256, "width": width, "height": height}
    record = run_record(screen, source, made.estimator, request, result, [*files, "run.json"])
    files["run.json"] = to_json(record).encode()
    write_directory(out, files, FILES, options["force"])
    screen.show("", f"Wrote {out}/: {', '.join(sorted(files))}")
    screen.finish(record)


def _result(made: Any, image: "np.ndarray", labels: "np.ndarray", n_patches: int) -> dict[str, Any]:
    """Return what was found, the largest segment first."""
    import numpy as np

    from ..image.draw import mean_colors

    pixels = np.bincount(labels.ravel())
    colors = np.round(255 * mean_colors(image, labels)).astype(int)
    segments = [
        {
            "label": int(label),
            "pixels": int(pixels[label]),
            "share": float(pixels[label] / labels.size),
            "color": "#{:02x}{:02x}{:02x}".format(*colors[label]),
        }
        for label in np.argsort(-pixels, kind="stable")
    ]
    result = {"n_segments": len(pixels), "n_superpixels": n_patches, "scale": made.scale}
    for name in ("n_iter_", "converged_", "log_joint_", "objective_"):
        if hasattr(made.estimator, name):
            result[name.removesuffix("_")] = getattr(made.estimator, name)
    return result | {"segments": segments}


def _drawn(image: "np.ndarray", labels: "np.ndarray", labels_format: str) -> dict[str, Any]:
    """Return the files that show the segments, and the map of them."""
    import numpy as np

    from ..image.draw import draw_outlines, mean_colors
    from ..image.picture import png_bytes

    files = {
        "segments.png": png_bytes(draw_outlines(image, labels)),
        "colors.png": png_bytes(mean_colors(image, labels)[labels]),
    }
    if labels_format == "png":
        return files | {"labels.png": png_bytes(labels)}
    out = io.BytesIO()
    np.save(out, labels)
    return files | {"labels.npy": out.getvalue()}


def _told(scores: "Scores") -> str:
    n = len(scores.rand)
    return (
        f"Agreement with {n} {'person' if n == 1 else 'people'}: "
        f"probabilistic Rand {scores.probabilistic_rand:.3f}, "
        f"adjusted Rand {scores.mean_adjusted_rand:.3f}, "
        f"variation of information {scores.mean_variation_of_information:.2f} nats"
    )


def _view(segments: list[dict[str, Any]]) -> Any:
    from rich.table import Table as Grid
    from rich.text import Text

    from ..report.plain import percent

    grid = Grid(box=None, header_style="bold")
    for heading in ("segment", "pixels", "share"):
        grid.add_column(heading, justify="right")
    grid.add_column("mean colour")
    for found in segments[:MOST_SHOWN]:
        shown = Text.assemble(("  ", f"on {found['color']}"), f" {found['color']}")
        numbers = (str(found["label"]), f"{found['pixels']}", percent(found["share"]))
        grid.add_row(*numbers, shown)
    if len(segments) > MOST_SHOWN:
        grid.add_row("...", "", "", f"and {len(segments) - MOST_SHOWN} more, in run.json")
    return grid
