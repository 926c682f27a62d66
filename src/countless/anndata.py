"""Clustering of AnnData objects, in the manner of scanpy's tools: results go into ``obs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from .auto import AutoClustering

if TYPE_CHECKING:
    from anndata import AnnData


def cluster(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    key_added: str = "countless",
    estimator: Any = None,
    random_state: int = 0,
    copy: bool = False,
) -> AnnData | None:
    """Cluster the observations of an AnnData object without choosing a resolution or k.

    Parameters
    ----------
    adata : AnnData
        Annotated data, of anndata (``pip install 'countless[anndata]'``).
    use_rep : str, optional
        What to cluster: ``'X'``, a key of ``adata.layers`` or one of ``adata.obsm``. By default
        ``'X_pca'`` where it is there, else ``'X'``.
    key_added : str, default='countless'
        The column of ``adata.obs`` with the clusters, as categories ``'0'``, ``'1'``, ..., numbered
        by size; ``'-1'`` is background. ``adata.uns`` has the parameters and the result by the same
        key.
    estimator : estimator, optional
        How to cluster; by default `AutoClustering`. It is cloned.
    random_state : int, default=0
        The seed of the default estimator.
    copy : bool, default=False
        Whether to return a copy instead of changing ``adata``.

    Returns
    -------
    AnnData or None
        The copy, if ``copy``.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import countless.anndata
    >>> from countless import DPMeans
    >>> rows = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    >>> adata = anndata.AnnData(rows + 9 * (np.arange(60) < 40)[:, None])
    >>> countless.anndata.cluster(adata, estimator=DPMeans())
    >>> adata.obs["countless"].value_counts().to_dict()
    {'0': 40, '1': 20}
    >>> adata.uns["countless"]["n_clusters"]
    2
    """
    import numpy as np

    from ._data.anndata_format import labels_as_categories, representation
    from ._labels import number_by_size

    adata = adata.copy() if copy else adata
    key, rows, _ = representation(adata, use_rep)
    model = AutoClustering(random_state=random_state) if estimator is None else clone(estimator)
    labels = number_by_size(np.asarray(model.fit_predict(rows)))
    adata.obs[key_added] = labels_as_categories(labels.astype(float))
    found: dict[str, Any] = {"params": {"use_rep": key, "estimator": repr(model)}}
    found["n_clusters"] = int(labels.max()) + 1
    for name in ("best_method_", "reason_"):
        if hasattr(model, name):
            found[name.removesuffix("_")] = getattr(model, name)
    of_path = getattr(getattr(model, "path_", None), "confidence", None)
    confidence = getattr(model, "confidence_", of_path)
    if confidence is not None:
        found["confidence"] = float(confidence)
    adata.uns[key_added] = found
    return adata if copy else None
