"""Reports in a real browser: the slider, hover, edits, search, hostile names, and no network."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from browser import Page, open_browser
from countless import AutoClustering, CrossCat, DPMeans, DPMixture, apply_edits, report

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads):
    found = open_browser(downloads)
    yield found
    found.quit()


@pytest.fixture(scope="module")
def blobs():
    """More rows than micro-clusters, so that a cluster's rows share micro-clusters."""
    X = make_blobs(1500, centers=5, cluster_std=0.7, n_features=3, random_state=3)[0]
    return X, DPMeans(random_state=0).fit(X)


@pytest.fixture(scope="module")
def page_file(blobs, tmp_path_factory):
    X, model = blobs
    path = tmp_path_factory.mktemp("page") / "page.html"
    return report(model, X, path, columns=["wide", "tall", "deep"], source="blobs")


@pytest.fixture
def page(browser, page_file):
    return Page(browser, page_file)


def sizes_of(labels):
    names, sizes = np.unique(labels, return_counts=True)
    return {f"cluster {name}": int(size) for name, size in zip(names, sizes, strict=True)}


def set_slider(page, place):
    page.run(
        "const box = document.getElementById('slider'); box.value = arguments[0];"
        "box.dispatchEvent(new Event('input', {bubbles: true}))",
        place,
    )


def saved_edits(page, downloads):
    target = downloads / "edits.json"
    target.unlink(missing_ok=True)
    page.click("#save")
    until = time.monotonic() + 20
    while not target.exists():
        assert time.monotonic() < until, "nothing was downloaded"
        time.sleep(0.05)
    return json.loads(target.read_text(encoding="utf-8"))


def test_the_page_shows_the_model_without_errors_or_requests(page, blobs):
    _, model = blobs
    assert page.browser.title == "5 clusters in blobs"
    assert page.sizes() == sizes_of(model.labels_)
    assert len(page.all("#clusters .card")) == 5
    page.wait("document.querySelectorAll('#map .plot > .bk-Figure').length === 1")
    page.wait("document.querySelectorAll('#tree .plot > .bk-Figure').length === 1")
    # Nothing is blocked by the policy, and nothing leaves.
    assert page.errors() == []
    assert page.requests() == []


def test_the_policy_stops_scripts_and_requests(page):
    page.run(
        "const made = document.createElement('script'); made.textContent = 'window.pwned = 1';"
        "document.body.append(made); const image = new Image(); image.src = 'http://127.0.0.1:9/x';"
    )
    time.sleep(0.5)
    assert page.run("return window.pwned") is None
    script, image = page.errors()
    assert "Executing inline script violates" in script
    assert "Loading the image" in image
    assert page.requests() == []


@pytest.mark.parametrize("k", [1, 2, 3, 8, 40])
def test_the_slider_gives_the_clusters_of_the_path(page, blobs, k):
    _, model = blobs
    steps = page.run("return Number(document.getElementById('slider').max)")
    ks = json.loads(page.run("return document.getElementById('data').textContent"))["path"]["k"]
    place = round(steps * np.log(ks.index(k) + 1) / np.log(len(ks)))
    set_slider(page, place)
    assert page.texts("#number") == [f"{k} cluster" + "s" * (k > 1)]
    expected = sizes_of(model.path_.clusters_at(k)[1])
    assert page.sizes() == expected
    assert f"{k} cluster" in page.find("#slider").get_attribute("aria-valuetext")


def test_the_slider_moves_by_keyboard_and_returns_to_the_model(page, blobs):
    _, model = blobs
    from selenium.webdriver.common.keys import Keys

    slider = page.find("#slider")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert page.texts("#number") == ["6 clusters"]
    slider.send_keys(Keys.ARROW_LEFT)
    assert page.sizes() == sizes_of(model.labels_)
    assert page.run("return document.getElementById('save').disabled")


def test_hover_shows_the_row(page, blobs):
    X, _ = blobs
    page.wait("document.querySelector('#map .plot > .bk-Figure')")
    box = page.find("#map .plot")
    page.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", box)
    time.sleep(0.5)
    from selenium.webdriver import ActionChains

    rectangle = box.rect
    seen = set()
    # Some of these places have a row under them.
    for x in np.linspace(-0.4, 0.4, 25):
        offset = int(x * rectangle["width"])
        for y in (-0.25, -0.1, 0.05, 0.2):
            ActionChains(page.browser, duration=0).move_to_element_with_offset(
                box, offset, int(y * rectangle["height"])
            ).perform()
            text = page.texts("#row h3")
            if text:
                seen.add(text[0])
        if len(seen) > 1:
            break
    assert len(seen) > 1
    row = int(page.texts("#row h3")[0].removeprefix("row "))
    shown = [float(text) for text in page.texts("#row dd")]
    np.testing.assert_allclose(shown, X[row - 1], atol=1e-3)


def test_edits_make_the_model_that_the_page_shows(page, blobs, downloads):
    X, model = blobs
    second = 3
    page.click(f"[data-cluster='{second}'] [aria-label^='Lock']")
    set_slider(page, page.run("return Number(document.getElementById('slider').max)") * 0.45)
    largest = page.run("return document.querySelector('.card:not(.locked)').dataset.cluster")
    page.click(f"[data-cluster='{largest}'] [aria-label^='Split']")
    ids = page.run("return [...document.querySelectorAll('.card')].map((c) => c.dataset.cluster)")
    others = [one for one in ids if one not in (str(second), largest)]
    page.choose(f"[data-cluster='{others[0]}'] select", others[-1])
    page.click(f"[data-cluster='{others[0]}'] [aria-label^='Rename']")
    box = page.find(f"[data-cluster='{others[0]}'] input")
    box.send_keys(HOSTILE[:60] + "\n")
    assert page.run("return window.pwned") is None
    assert HOSTILE[:60] in page.sizes()
    edits = saved_edits(page, downloads)
    assert [one["action"] for one in edits["edits"]] == [
        "lock",
        "choose",
        "split",
        "merge",
        "rename",
    ]
    edited = apply_edits(model, edits)
    assert sorted(page.sizes().values()) == sorted(np.bincount(edited.labels_).tolist())
    assert HOSTILE[:60] in edited.cluster_names_
    # Row by row, not only by size: the first 25 rows are listed.
    names = [edited.cluster_names_[label] for label in edited.labels_[:25]]
    listed = page.texts("#rows tbody .of")
    assert len(listed) == 25
    for name, shown in zip(names, listed, strict=True):
        assert shown == name if name else shown.startswith("cluster ")
    pairs = {(shown, int(label)) for shown, label in zip(listed, edited.labels_, strict=False)}
    assert len(pairs) == len({shown for shown, _ in pairs}) == len({label for _, label in pairs})
    np.testing.assert_array_equal(edited.predict(X), edited.labels_)
    assert page.errors() == []


def test_undo_takes_back_the_last_edit(page):
    before = page.sizes()
    page.click("[data-cluster='0'] [aria-label^='Split']")
    assert len(page.sizes()) == len(before) + 1
    page.click("#undo")
    assert page.sizes() == before


def test_search_finds_rows_by_their_cells(page):
    name = page.texts("#rows tbody tr:nth-child(7) td")
    search = page.find("#rows input[type=search]")
    search.send_keys(name[3])
    page.wait("document.querySelectorAll('#rows tbody tr').length < 25")
    assert name in [page.texts(f"#rows tbody tr:nth-child({i}) td") for i in range(1, 4)]
    search.send_keys("no such text")
    page.wait("document.querySelectorAll('#rows tbody tr').length === 0")


def test_one_cluster_can_be_looked_at_alone(page):
    page.click(".legend li:nth-child(2) button")
    assert len(page.all("#clusters .card")) == 1
    assert page.find(".legend li:nth-child(2) button").get_attribute("aria-pressed") == "true"


def test_hostile_names_and_cells_are_text(browser, tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({HOSTILE: random.normal(size=60) + 8 * (np.arange(60) % 2)})
    frame["{{ 7 * 7 }}"] = [HOSTILE if at % 2 else "\u2028\U0001f600" for at in range(60)]
    frame["plain"] = random.normal(size=60) + 8 * (np.arange(60) % 2)
    model = AutoClustering(["columns"], random_state=0).fit(frame)
    names = [HOSTILE] * 60
    path = report(model, frame, tmp_path / "x.html", source=HOSTILE, title=HOSTILE, rows=names)
    page = Page(browser, path)
    assert page.run("return window.pwned") is None
    assert page.browser.title.split() == HOSTILE.split()
    assert HOSTILE in page.texts("#rows th")
    assert HOSTILE in page.texts("#rows td")
    assert page.run("return document.querySelectorAll('img').length") == 0
    assert "{{ 7 * 7 }}" in page.texts("#rows th")
    for more in page.all("details summary"):
        page.run("arguments[0].click()", more)
    assert page.run("return window.pwned") is None
    assert page.errors() == []


def test_candidates_can_be_looked_at_everywhere(browser, tmp_path):
    X = make_blobs(300, centers=3, cluster_std=0.8, random_state=2)[0]
    model = AutoClustering(random_state=0).fit(X)
    page = Page(browser, report(model, X, tmp_path / "auto.html"))
    assert page.texts("#alternatives tr.chosen td")[0] == model.best_method_
    other = next(name for name in model.candidate_labels_ if name != model.best_method_)
    page.click(".thumb:nth-child(2)")
    expected = sorted(np.bincount(model.candidate_labels_[other]).tolist())
    assert sorted(page.sizes().values()) == expected
    assert not page.all("#clusters [aria-label^='Split']")
    assert page.errors() == []


def test_draws_of_a_posterior_can_be_looked_at(browser, tmp_path):
    X = make_blobs(120, centers=3, cluster_std=0.8, random_state=2)[0]
    model = DPMixture(n_sweeps=60, n_chains=2, random_state=0).fit(X)
    page = Page(browser, report(model, X, tmp_path / "mixture.html"))
    page.wait("document.querySelectorAll('#posterior .plot > .bk-Figure').length === 2")
    draws = model.posterior_.labels.reshape(-1, 120)
    page.choose("#bar select", 0)
    assert sorted(page.sizes().values()) == sorted(np.bincount(draws[0]).tolist())
    assert "most probable number" in page.texts("#words")[0]
    assert page.errors() == []


def test_views_of_crosscat_can_be_looked_at(browser, tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({f"a{i}": random.normal(size=80) + 6 * (np.arange(80) % 2) for i in "12"})
    frame["b"] = np.where(np.arange(80) < 40, "left", "right")
    model = CrossCat(n_sweeps=20, n_chains=1, random_state=0).fit(frame)
    page = Page(browser, report(model, frame, tmp_path / "crosscat.html"))
    page.wait("document.querySelectorAll('#dependence .plot > .bk-Figure').length === 1")
    last = len(model.views_) - 1
    page.choose("#bar select", last)
    expected = sorted(np.bincount(model.views_[last].labels).tolist())
    assert sorted(page.sizes().values()) == expected
    assert page.errors() == []


def luminance(color):
    parts = [float(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_the_contrast_of_wcag_aa(page, theme):
    page.run("document.documentElement.dataset.theme = arguments[0]", theme)
    pairs = page.run(
        """
        const ground = (node) => {
          for (let at = node; at; at = at.parentElement) {
            const color = getComputedStyle(at).backgroundColor;
            if (!color.endsWith(", 0)")) return color;
          }
          return "rgb(255, 255, 255)";
        };
        return [...document.querySelectorAll("body *")].filter((node) =>
          [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())
          && node.offsetParent && !node.closest(".plot, :disabled, script"))
          .map((node) => [getComputedStyle(node).color, ground(node), node.textContent]);
        """
    )
    assert len(pairs) > 100
    for text, ground, what in pairs:
        high, low = sorted((luminance(text), luminance(ground)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (what, text, ground)


def test_controls_have_names_and_the_page_fits_a_phone(page):
    unnamed = page.run(
        """
        return [...document.querySelectorAll("button, select, input")].filter((one) =>
          !one.closest(".plot") && !one.textContent.trim() && !one.getAttribute("aria-label")
          && !(one.id && document.querySelector(`label[for="${one.id}"]`))).length;
        """
    )
    assert unnamed == 0
    size = {"width": 360, "height": 780, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    time.sleep(0.5)
    assert page.run("return document.documentElement.scrollWidth") <= 360
    page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
