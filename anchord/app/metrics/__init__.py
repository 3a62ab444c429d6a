"""What monitoring sees, in Prometheus' words: catalogue, numbers of the store, tally, door."""
