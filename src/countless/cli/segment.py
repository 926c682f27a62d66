"""``countless segment``: read an image, segment it, and write the segments and drawings."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    as_given,
    check_exists,
    force_option,
    jobs_option,
    json_option,
    named_after,
    quiet_option,
    seed_option,
)

if TYPE_CHECKING:
    import numpy as np

    from ..image.scores import Scores
    from ..image.segment import Segmentation
    from .console import Screen

FILES = ("segments.png", "colors.png", "labels.png", "labels.npy", "report.html", "run.json")
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
@click.option(
    "--report",
    is_flag=True,
    help="Write report.html, too: one page with the segments and the superpixels.",
)
@seed_option
@jobs_option
@json_option
@quiet_option
@force_option
def segment(picture: str, **options: Any) -> None:
    """Cut PICTURE, a file that Pillow reads, into segments without saying how many.

    Writes segments.png (their outlines), colors.png (their mean colours), labels.png or labels.npy
    (the segment of each pixel) and run.json. Needs pip install 'countless[image]'.
    """
    check_exists(picture)

    from .._data.table import counted
    from .._data.write import check_free, write_directory
    from .._errors import InputError
    from ..image.picture import need_scikit_image, read_picture
    from ..image.scores import compare
    from .console import Screen, to_json
    from .run import Request, run_record

    arguments, method = as_given(picture=picture, **options), options["method"]
    out = options["out"] or named_after(picture, "-segments")
    check_free(out, FILES, options["force"])
    if options["report"]:
        from .report import need_report

        need_report()
    try:
        need_scikit_image()
    except ImportError as error:
        raise InputError(str(error)) from error

    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    with screen.step("read", f"reading {picture}"):
        image, sha256 = read_picture(picture)
        truths = _read_truths(options["truth"], picture, image.shape[:2])
    try:
        found = _find(screen, picture, image, options)
    except ValueError as error:
        raise InputError(str(error)) from error
    result = _result(found, image)
    screen.show(f"{counted(found.n_segments, 'segment')}, found by {method}", "")
    screen.show(_view(result["segments"]))
    if truths:
        with screen.step("compare", "comparing with what people drew"):
            result["scores"] = compare(found.labels, truths)
        screen.show("", _told(result["scores"]))
    with screen.step("draw", "drawing"):
        files = _drawn(image, found.labels, options["labels"])
    if options["report"]:
        from .report import report_of_picture

        with screen.step("report", "drawing the report"):
            files["report.html"] = report_of_picture(found, image, Path(picture).name)
    height, width = image.shape[:2]
    source = {"source": Path(picture).name, "sha256": sha256, "width": width, "height": height}
    request = Request("segment", method, arguments, options["seed"], out, options["force"], False)
    record = run_record(screen, source, found.estimator, request, result, [*files, "run.json"])
    files["run.json"] = to_json(record).encode()
    write_directory(out, files, FILES, options["force"])
    screen.show("", f"Wrote {out}/: {', '.join(sorted(files))}")
    screen.finish(record)


def _read_truths(paths: tuple[str, ...], picture: str, size: tuple[int, ...]) -> "list[np.ndarray]":
    """Read human segmentations, which must have the size of the image."""
    from .._errors import InputError
    from ..image.truth import read_truth

    truths = []
    for path in paths:
        for truth in read_truth(path):
            if truth.shape != size:
                raise InputError(f"{path} has {_by(truth.shape)} pixels, and {picture} {_by(size)}")
            truths.append(truth)
    return truths


def _by(size: tuple[int, ...]) -> str:
    return " x ".join(str(length) for length in size[::-1])


def _find(
    screen: "Screen", picture: str, image: "np.ndarray", options: dict[str, Any]
) -> "Segmentation":
    """Segment the image, step by step."""
    from .._data.table import counted
    from .._errors import InputError
    from ..image.segment import Segmentation, check_weights, cut_patches, make_method, spread
    from ..image.similarity import similarity
    from .methods import check_names, parse_settings
    from .progress import follow

    method, prior = options["method"], options["prior"]
    if prior is not None and method != "affinity":
        raise InputError(f"--prior is for affinity, not for {method}")
    names = ("color_weight", "edge_weight")
    weights = check_weights(**{name: options[name] for name in names if options[name] is not None})
    settings = parse_settings(options["settings"])
    if options["jobs"] is not None and method == "affinity":  # the others do not use threads
        settings.setdefault("n_jobs", options["jobs"])
    with screen.step("superpixels", "cutting the picture into superpixels"):
        patches = cut_patches(image, options["superpixels"])
    n_patches = counted(patches.n, "superpixel")
    made = make_method(method, prior or "dp", patches.n, options["scale"], {}, options["seed"])
    check_names(method, settings, made.estimator.get_params(deep=False))
    made.estimator.set_params(**settings)
    screen.show(f"{Path(picture).name}: {_by(image.shape[:2])} pixels, {n_patches}")
    with screen.step("similarity", "comparing superpixels"):
        matrix = made.matrix(similarity(patches, **weights))
    with screen.step("fit", f"{method} on {n_patches}") as say:
        if screen.err.is_terminal:
            follow(made.estimator, say, matrix.shape)
        labels = spread(patches, made.estimator.fit_predict(matrix), *image.shape[:2])
    return Segmentation(labels, int(labels.max()) + 1, patches, made.estimator, made.scale)


def _result(found: "Segmentation", image: "np.ndarray") -> dict[str, Any]:
    """Return the result, the largest segment first."""
    import numpy as np

    from ..image.draw import mean_colors

    pixels = np.bincount(found.labels.ravel())
    colors = np.round(255 * mean_colors(image, found.labels)).astype(int)
    segments = [
        {
            "label": int(label),
            "pixels": int(pixels[label]),
            "share": float(pixels[label] / found.labels.size),
            "color": "#{:02x}{:02x}{:02x}".format(*colors[label]),
        }
        for label in np.argsort(-pixels, kind="stable")
    ]
    result = {
        "n_segments": found.n_segments,
        "n_superpixels": found.patches.n,
        "scale": found.scale,
    }
    for name in ("n_iter_", "converged_", "log_joint_", "objective_"):
        if hasattr(found.estimator, name):
            result[name.removesuffix("_")] = getattr(found.estimator, name)
    return result | {"segments": segments}


def _drawn(image: "np.ndarray", labels: "np.ndarray", labels_format: str) -> dict[str, Any]:
    """Return the files of drawings and of the label map."""
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

    from .._report.plain import percent

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
