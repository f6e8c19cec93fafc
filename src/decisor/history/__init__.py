"""The history: runs that were recorded, with their traces, marks and approvals."""
