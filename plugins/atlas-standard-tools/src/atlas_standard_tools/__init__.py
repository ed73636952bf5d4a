"""Tools that most agents want: arithmetic, units, dates, files under one root, and fetching a page.

Offered to Atlas by `plugin.py`; importing this package loads nothing else.
"""

__version__ = "0.1.0"
