"""
Communities of a graph
======================

Learn how to cluster the nodes of a graph. `GraphDPMeans` minimises the normalised cut plus a
penalty for each cluster; the graph is who appears with whom in *Les Misérables*.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from countless import GraphDPMeans

graph = nx.les_miserables_graph()
model = GraphDPMeans(random_state=0).fit(graph)
print(f"{model.n_clusters_} clusters, normalised cut {model.cut_:.2f}")
names, degree = np.array(graph), np.array([degree for _, degree in graph.degree()])
for cluster in range(model.n_clusters_):
    members = np.flatnonzero(model.labels_ == cluster)
    leading = names[members[np.argsort(-degree[members])[:4]]]
    print(f"  {len(members):2d} people: {', '.join(leading)}")

# %%
# Node size is the number of neighbours.

figure, ax = plt.subplots(figsize=(6.8, 5), layout="constrained")
position = nx.spring_layout(graph, seed=3, iterations=200)
nx.draw_networkx_edges(graph, position, ax=ax, edge_color="0.8", width=0.6)
nx.draw_networkx_nodes(
    graph, position, ax=ax, node_color=model.labels_, cmap="tab10", vmax=9, node_size=8 * degree
)
ax.set_axis_off()
plt.show()
