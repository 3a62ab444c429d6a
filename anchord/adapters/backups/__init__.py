"""The backup file; see `anchord.adapters.backups.tarball`."""
