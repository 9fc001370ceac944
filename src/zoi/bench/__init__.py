"""Honest timing beside peers: one timer, one model of agreement, one description of the machine."""
