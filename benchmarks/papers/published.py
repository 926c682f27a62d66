"""The numbers that the three texts report, each with the table, figure or section it is from."""

# Kulis and Jordan, "Revisiting k-means", table 1: normalised mutual information.
KJ_TABLE_1 = {  # DP-means, k-means, Gibbs
    "wine": (0.41, 0.43, 0.42),
    "iris": (0.75, 0.76, 0.73),
    "pima": (0.02, 0.03, 0.02),
    "soybean": (0.72, 0.66, 0.73),
    "car": (0.07, 0.05, 0.15),
    "balance scale": (0.17, 0.11, 0.14),
    "breast cancer": (0.04, 0.03, 0.04),
    "vehicle": (0.18, 0.18, 0.17),
}
# Section 6.2 and figure 2a to 2c.
KJ_THREE_GAUSSIANS = {
    "passes": 8,
    "k": 3,
    "nmi": 0.89,
    "gibbs_sweeps_to_3": 3000,
    "gibbs_k_grows_after": 1500,
}
KJ_PATCHES = {
    "rows": 312_320,
    "columns": 128,
    "passes": 63,
    "seconds_a_pass": 37.9,
    "gibbs_seconds_a_sweep": 29.4,
}
# Section 6.3: normalised mutual information averaged over the 50 data sets.
KJ_HDP = {
    "k-means, all rows": 0.77,
    "DP-means, all rows": 0.73,
    "k-means, each data set": 0.79,
    "DP-means, each data set": 0.79,
    "hard HDP": 0.81,
}
KJ_HDP_CLUSTERS = {"global": 17, "local": 4.4, "seconds": 28.8, "k-means seconds": 2.7}

# Tarlow, Zemel and Frey, "Flexible priors for exemplar-based clustering", section 6.1.
TZF_CONVERGED = {"DPAP": 0.94, "AP": 1.0}
TZF_SHIFTS = (-100, -50, -35, -20, -10, 0)  # d of figure 4b
# Table 1: clusters and Rand index of a picture at each setting, from coarse to fine.
TZF_TABLE_1 = {
    "family": {
        "people": [(21, 1.0)],
        "DPAP": [(19, 0.746), (30, 0.884), (50, 0.937)],
        "AP": [(7, 0.833), (19, 0.915), (42, 0.919)],
        "normalised cuts": [(7, 0.862), (19, 0.914), (41, 0.917)],
    },
    "diver": {
        "people": [(10, 1.0)],
        "DPAP": [(6, 0.734), (15, 0.773), (31, 0.697)],
        "AP": [(5, 0.494), (16, 0.457), (31, 0.377)],
        "normalised cuts": [(6, 0.424), (15, 0.395), (30, 0.379)],
    },
}

# Murphy, "Machine Learning: a Probabilistic Perspective", chapter 25.
MURPHY_WORKED = {  # section 25.1.2, of figure 25.1
    "purity": 0.71,
    "pairs in one cluster": 40,
    "true positives": 20,
    "false positives": 20,
    "false negatives": 24,
    "true negatives": 72,
    "Rand index": 0.68,
}
MURPHY_TABLE_25_1 = {  # single, complete, average linkage, BHC; with standard errors
    "synthetic": ((0.599, 0.033), (0.634, 0.024), (0.668, 0.040), (0.828, 0.025)),
    "newsgroups": ((0.275, 0.001), (0.315, 0.008), (0.282, 0.002), (0.465, 0.016)),
    "spambase": ((0.598, 0.017), (0.699, 0.017), (0.668, 0.019), (0.728, 0.029)),
    "digits": ((0.224, 0.004), (0.299, 0.006), (0.342, 0.005), (0.393, 0.015)),
    "glass": ((0.478, 0.009), (0.476, 0.009), (0.491, 0.009), (0.467, 0.011)),
}
MURPHY_FIGURE_25_10 = {"clusters": 3}
MURPHY_FIGURE_25_12 = {"city block merges": [(1, 3), (4, 5)], "cut at 2": [{4, 5}, {1, 3}, {2}]}
MURPHY_FIGURE_25_13 = {"clusters": 16, "genes": 310}
MURPHY_FIGURE_25_18 = {"animals": 50, "features": 85, "animal clusters": 12, "feature clusters": 33}
MURPHY_FIGURE_25_20 = {
    "animals": 22,
    "features": 106,
    "views": 3,
    "animals of view 1": 4,
    "animals of view 3": 4,
}
