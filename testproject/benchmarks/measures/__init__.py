"""One module for each family of measures: its ``TRIALS``, and the ``FIGURES`` that are made of their readings."""
