"""``manage.py runworkers``, which runs the jobs."""
