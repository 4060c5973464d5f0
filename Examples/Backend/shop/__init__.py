"""The shop's tables as Django's models."""
