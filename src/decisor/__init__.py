"""Decisor answers decision questions from data, and shows what the answer rests on."""

__version__ = "0.1.0"
