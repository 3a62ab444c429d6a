"""`anchord serve`: what is published, over HTTP, to be read only.

`server` listens and tells the service manager, `application` has the routes, `tree` hands out
files, `health` says whether all of it works. Everything here needs the extra `web`.
"""
