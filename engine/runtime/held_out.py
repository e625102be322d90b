"""What has to be known of held-out items before any verdict: how many tie in time, repeat an earlier item, are cancellations.

    counts = count(held_out, offsets, item, time, negative)     # numpy arrays; as dataset.json has them
    about(info.held_out, info.counts["test"], info.options)     # in sentences

These are the functions that `seqscope data import` uses.
"""

from engine.data.held_out import about, count

__all__ = ["about", "count"]
