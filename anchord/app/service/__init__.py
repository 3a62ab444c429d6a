"""Parts of `anchord run`: notification, signals, metronome, the work itself, its log."""
