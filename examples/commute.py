"""A private chain from a small table of counts; the README shows this file."""

import dpmarkov as dpm

space = dpm.StateSpace(["home", "work", "shop", "gym"])  # public: declared, not read off the data
counts = dpm.TransitionCounts.from_dense(  # sensitive
    [[0, 8120, 2310, 415], [6904, 1120, 1873, 902], [3675, 310, 95, 140], [1260, 52, 101, 0]],
    space,
)
release = dpm.release(counts, epsilon=1.0, delta=1e-6, unit="transition")
release.save("commute.json", overwrite=True)

public = dpm.load("commute.json")  # what a reader has
print(public.guarantee)
for state, share in zip(space.labels, public.chain.stationary_distribution(), strict=True):
    print(f"{state:5} {share:.4f}")
print(f"mixing time {public.chain.mixing_time(0.01)}, {public.touched} cells at the floor")
