"""Write llms.txt: every page of the guide in the order of the menu, with its first sentence."""

import re
from pathlib import Path

from docutils import nodes


def first_sentence(document):
    """Return the first sentence of a page."""
    for paragraph in document.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text:
            return re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0]
    return ""


def in_menu_order(env, page, seen):
    """Yield pages, each before those below it."""
    if page in seen or page not in env.titles:
        return
    seen.add(page)
    yield page
    for below in env.toctree_includes.get(page, ()):
        yield from in_menu_order(env, below, seen)


def write(app, error):
    """Write the file beside the pages."""
    if error or app.builder.format != "html":
        return
    env = app.env
    lines = []
    for page in in_menu_order(env, env.config.root_doc, set()):
        title, sentence = env.titles[page].astext(), first_sentence(env.get_doctree(page))
        if page == env.config.root_doc:
            lines += [f"# {title}", "", f"> {sentence}", "", "## Pages", ""]
        else:
            address = app.builder.get_target_uri(page)
            lines.append(f"- [{title}]({address})" + (f": {sentence}" if sentence else ""))
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app):
    """Register the writer."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
