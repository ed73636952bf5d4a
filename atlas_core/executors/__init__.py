"""Where calls run: the base of every executor, and the kernel's own two."""
