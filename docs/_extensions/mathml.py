"""Formulas as MathML, which browsers draw themselves: no script, nothing from elsewhere."""

from docutils import nodes
from latex2mathml.converter import convert


def inline(self, node):
    """Write a formula of a sentence."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(self, node):
    """Write a formula of its own line."""
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
