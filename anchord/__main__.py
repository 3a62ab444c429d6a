"""Run anchord as `python -m anchord`."""

from anchord.app.cli.main import main

main()
