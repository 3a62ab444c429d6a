"""A stand-in for archive.org items: the upload host, metadata, tasks and downloads."""
