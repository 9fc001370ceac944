"""Machines that plans run on."""
