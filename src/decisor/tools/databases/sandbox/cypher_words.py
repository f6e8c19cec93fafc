"""The words of Cypher that a reading statement may use: all others are refused."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STARTS = words("MATCH OPTIONAL WITH UNWIND RETURN CALL")
"""Clauses that may begin a statement or a part of it."""

CLAUSES = STARTS | words("WHERE ORDER SKIP OFFSET LIMIT UNION YIELD")

INFIX = words("AND OR XOR IN STARTS ENDS CONTAINS IS AS WHEN THEN ELSE BY")
"""They may follow a complete expression, and want another one after them."""

AFTER = words("ASC ASCENDING DESC DESCENDING END")
"""They may follow a complete expression and are complete themselves."""

PREFIX = words("NOT DISTINCT CASE ALL ANY SHORTEST NULLS FIRST LAST")
SUBQUERIES = words("EXISTS COUNT COLLECT CALL")
LITERALS = words("NULL TRUE FALSE")

NEVER = words(
    """CREATE MERGE SET DELETE DETACH NODETACH REMOVE FOREACH LOAD INSERT DROP ALTER GRANT DENY REVOKE COPY ATTACH
    INSTALL TRANSACTIONS"""
)
"""Refused even where they could be read as the name of a variable: `backticks` make a name of them."""

FUNCTIONS = words(
    """abs acos all any asin atan atan2 avg ceil ceiling char_length character_length coalesce collect cos cosh cot
    count date datetime degrees e elementid endnode exists exp floor haversin head id isempty isnan keys labels last
    left length list_filter list_transform localdatetime localtime log log10 lower ltrim max min nodes none normalize
    nullif percentilecont percentiledisc pi point properties radians rand randomuuid range reduce relationships replace
    reverse rels right round rtrim btrim shortestpath allshortestpaths sign sin single sinh size split sqrt startnode
    stdev stdevp substring sum tail tan tanh time timestamp toboolean tobooleanlist tobooleanornull tofloat
    tofloatlist tofloatornull tointeger tointegerlist tointegerornull tolower tostring tostringlist tostringornull
    toupper trim type upper valuetype duration variance median repeat levenshtein list_sum list_sort list_distinct
    duration.between duration.indays duration.inmonths duration.inseconds date.truncate datetime.truncate
    localdatetime.truncate time.truncate localtime.truncate date.realtime point.distance point.withinbbox
    datetime.realtime localdatetime.realtime time.realtime localtime.realtime date.statement datetime.statement
    date.transaction datetime.transaction localdatetime.statement localdatetime.transaction localtime.statement
    localtime.transaction time.statement time.transaction vector.similarity.cosine vector.similarity.euclidean
    datetime.fromepoch datetime.fromepochmillis percentile_cont percentile_disc
    stdev_samp stdev_pop path_length cardinality collect_list ln"""
)

FUNCTION_FAMILIES = ("apoc.text.", "apoc.coll.", "apoc.math.", "apoc.number.")

PROCEDURES = words(
    """db.labels db.relationshiptypes db.propertykeys db.schema.visualization db.schema.nodetypeproperties
    db.schema.reltypeproperties db.index.fulltext.querynodes db.index.fulltext.queryrelationships
    db.index.vector.querynodes apoc.meta.schema apoc.meta.data apoc.meta.stats apoc.meta.nodetypeproperties
    apoc.meta.reltypeproperties table_info show_tables"""
)

SHOWN = words("INDEX INDEXES CONSTRAINT CONSTRAINTS FUNCTIONS PROCEDURES")
