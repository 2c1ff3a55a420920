"""A shop whose tasks have the short names that pictures show. On the path while a test of a browser runs."""
