"""Compiled kernels are kept exactly as long as no source changes."""

import pytest

from countless.kernels.cached import forget_if_changed


@pytest.fixture
def folders(tmp_path):
    """Return two sources, and a folder with the index of a compiled kernel."""
    sources = [tmp_path / "caller.py", tmp_path / "called.py"]
    for source in sources:
        source.write_text("a = 1\n")
    kept = tmp_path / "__pycache__"
    kept.mkdir()
    forget_if_changed(sources, kept)
    (kept / "caller.f-1.py311.nbi").write_bytes(b"index")
    return sources, kept


def test_kernels_are_kept_while_sources_stay(folders):
    forget_if_changed(*folders)
    assert list(folders[1].glob("*.nbi"))


def test_a_change_in_one_file_forgets_the_kernels_of_all(folders):
    sources, kept = folders
    sources[1].write_text("a = 2\n")
    forget_if_changed(sources, kept)
    assert not list(kept.glob("*.nbi"))
    assert list(kept.iterdir())  # the new stamp


def test_kernels_of_unknown_origin_are_forgotten(folders):
    sources, kept = folders
    for path in kept.glob("*.sha256"):
        path.unlink()
    forget_if_changed(sources, kept)
    assert not list(kept.glob("*.nbi"))
