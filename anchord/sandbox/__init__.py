"""Stand-ins on loopback: calendar, regtest chain, control. Sandbox, not Bitcoin."""
