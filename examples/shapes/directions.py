"""
Texts as directions
===================

Learn how to cluster texts: turn them into vectors, keep only their direction
(`divergence="cosine"`) and let `describe` name the clusters by their words.

The texts are the first lines of the documentation of scikit-learn's own functions and classes.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from countless import DPMeans, describe

MODULES = ("cluster", "datasets", "ensemble", "linear_model", "metrics", "preprocessing")

texts, module_of = [], []
for name in MODULES:
    module = importlib.import_module(f"sklearn.{name}")
    for item in module.__all__:
        text = inspect.getdoc(getattr(module, item)) or ""
        if len(text) > 200:
            texts.append(text[:1500])
            module_of.append(name)

# %%
# TF-IDF weighs words, and a truncated singular value decomposition makes vectors of 20 numbers.

weights = TfidfVectorizer(stop_words="english", min_df=3, sublinear_tf=True).fit_transform(texts)
vectors = TruncatedSVD(20, random_state=0).fit_transform(weights)
model = DPMeans(divergence="cosine", random_state=0).fit(vectors)
table = describe(model, vectors, texts=texts)
print(f"{len(texts)} texts, {model.n_clusters_} clusters")
for row in table.head(8).itertuples():
    print(f"  {row.size:3d}  {', '.join(row.words[:5])}")

# %%
# All clusters, named by their first word, against the modules that the texts are from.

codes = np.array([MODULES.index(name) for name in module_of])
counts = np.array([np.bincount(codes[model.labels_ == k], minlength=6) for k in table["cluster"]])
figure, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
ax.imshow(counts / counts.sum(axis=1, keepdims=True), cmap="Blues", aspect="auto")
ax.set_xticks(range(len(MODULES)), MODULES, rotation=30, ha="right")
ax.set_yticks(range(len(table)), [words[0] for words in table["words"]])
ax.set_title("share of each cluster's texts", loc="left", fontsize="medium")
plt.show()
