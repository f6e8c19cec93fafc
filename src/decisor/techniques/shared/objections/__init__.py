"""Objections: claims of a final answer that do not stand on the rows it cites."""

from decisor.techniques.shared.objections.check import describe_departure as describe_departure
from decisor.techniques.shared.objections.check import find_fullest_ranking as find_fullest_ranking
from decisor.techniques.shared.objections.check import find_objections as find_objections
from decisor.techniques.shared.objections.check import holds_name as holds_name
from decisor.techniques.shared.objections.check import is_candidate_name as is_candidate_name
from decisor.techniques.shared.objections.reading import Claims as Claims
