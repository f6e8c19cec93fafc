"""Objections: claims of a final answer that do not stand on the rows it cites."""

from decisor.techniques.shared.objections.check import find_objections as find_objections
from decisor.techniques.shared.objections.claims import Claims as Claims
