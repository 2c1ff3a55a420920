"""
How fast the queue is, how much of what the database allows that is, and runs too long for the test suite.

``manage.py benchmark`` starts a PostgreSQL server of its own that waits for the disk as in production (or makes a
database of its own on the server of ``DATABASE_URL``), measures every figure three times and prints the medians::

    manage.py benchmark                                    # everything, about half an hour
    manage.py benchmark --only drain,latency.p50_over_floor
    manage.py benchmark --json benchmark.json --peers      # other queues too: pip install --group bench
    manage.py benchmark --scale 0.1 --rounds 1             # smaller and sooner, and not to be quoted

A machine's speed says little about a queue, so each figure is a ratio of two readings of the same round, beside the
readings themselves. How they are made fair:

* What is measured are processes of their own with debugging off: ``runworkers`` with its defaults, and other queues'
  workers as their manuals would have them. This process only fills tables and watches.
* A job counts when its settlement is committed. One watch tells that for everybody, by looking up a hundred jobs spread
  over the backlog (``watching``).
* Everybody stands at the first claim when the clock starts, so that no start-up is part of a rate (``drains``).
* Each drain begins with tables just filled, vacuumed and analysed, and just after a checkpoint.
* The bound is the package's own statements in a bare loop on one psycopg connection, prepared, in batches of 200
  (``actors.raw``): what the database allows, measured each time.
* Every second round runs everything backwards.

A family of figures is a module of ``measures``, which says what each is about. Its ``TRIALS`` give readings, its
``FIGURES`` are made of them; ``catalogue`` knows all. Measured processes are ``actors``.
"""
