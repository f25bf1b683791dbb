"""From raw events to counts, on the engine where the data lives.

The paper starts from a *count query* (section 2.3): how many records fall into each category.
This package answers it for whatever holds the records. Data enter through one border
(`sources`), behind which there is one kind of frame, a narwhals ``LazyFrame`` over DuckDB,
Polars or Spark; the counting, the pairing of consecutive events (`pairing`) and the bounding of
users (`bounding`) are written once for all of them and run there, so that only the counted
cells come back to Python. One case is different because a measurement asked for it: whole numbers
in a support of millions of cells are counted by sorting (`sorting`).

On Spark this means: labels are joined from a broadcast table, pairs made by a ``Window`` and
counted by a ``HashAggregate``, and only what is above that one is collected. The physical plan of
`count_paths`, from the top (`tests/counting/test_spark.py` holds it to this)::

    HashAggregate(keys=[origin, destination])     <- collected: one row for each pair of states
    +- Exchange hashpartitioning(origin, destination)
       +- HashAggregate(keys=[origin, destination], partial_count)
          +- Window [lag(state)], [entity], [time, state]
             +- Sort [entity, time, state]
                +- Exchange hashpartitioning(entity)
                   +- BroadcastHashJoin [state], [declared_label], LeftOuter
                      :- Scan of the events
                      +- BroadcastExchange of the declared labels

States and support are *declared*, never read off the data: a label that shows up because
somebody moved there would already give that person away (``theory`` section 5).

The engines are imported when they are used, never with the package.
"""

from dpmarkov.counting.count import count_categories, count_paths, count_transitions

__all__ = ["count_categories", "count_paths", "count_transitions"]
