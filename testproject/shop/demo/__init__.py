"""
The demonstration behind ``manage.py demo``, one piece a file.

``play`` tells the story: an ``endpoint`` plays the sellers' servers, ``customers`` place orders through the
view, ``workers`` are real processes of which one is killed, ``books`` say whether everything adds up, and
``report`` prints it.
"""
