"""The record of a decision, for whoever has to answer for it: made from a trace, read, shown, checked."""
