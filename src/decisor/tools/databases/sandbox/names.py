"""The allow lists of the SQL guard that hold for every engine. What is not on a list is refused."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NODES = words(
    """Alias Aliases All Any AtTimeZone Between BitString Boolean Bracket ByteString CTE Column ColumnDef ColumnPrefix
    Comprehension CharacterSet Cube DataType DataTypeParam DerivedTable Distinct Except ExplodeOuter Fetch Filter
    FormatJson From FromTimeZone Group GroupingSets Having HavingMax HexString Identifier IgnoreNulls In Intersect
    Interval IntervalSpan JSON JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathRecursive JSONPathRoot
    JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard JSONExtractQuote JSONValue
    OnCondition Join Lambda Lateral Limit LimitOptions Literal National Null Offset Order Ordered Paren Pivot PivotAlias
    PivotAny Placeholder PositionalColumn PreWhere PropertyEQ ProjectionDef Qualify RawString RespectNulls Rollup
    Select Slice Star Subquery TableAlias TableColumn TableSample Tuple UnicodeString Union UnpivotColumns Values Var
    Where Window WindowSpec With WithinGroup Schema Table Adjacent
    Introducer IndexTableHint JSONSchema JSONColumnDef RecursiveWithSearch"""
)
"""Node classes of sqlglot (with all its binary and unary operators) that a query may hold."""

FUNCTION_CLASSES_REFUSED = words(
    """AIAgg AIClassify AIEmbed AIForecast AIGenerate AISimilarity AISummarizeAgg Apply CheckXml Compress
    CurrentAccount CurrentAccountName CurrentAvailableRoles CurrentClient CurrentIpAddress CurrentOrganizationName
    CurrentOrganizationUser CurrentRegion CurrentRole CurrentRoleType CurrentSecondaryRoles CurrentSession
    CurrentStatement CurrentTransaction CurrentUser CurrentUserId CurrentVersion CurrentWarehouse DecompressBinary
    DecompressString Decrypt DecryptRaw DynamicIdentifier Encrypt EncryptRaw FeaturesAtTime GenerateEmbedding
    GenerateTable GenerateText Generator Host MLForecast MLTranslate NetFunc NextValueFor ObjectId OpenJSON Predict
    Randstr ReadCSV ReadParquet Search SearchIp Secret Seq1 Seq2 Seq4 Seq8 SessionUser ToFile VectorSearch
    XMLTable"""
)

COMMON = words(
    """bit_length char_length character_length concat cot cume_dist dense_rank every first_value hex ifnull initcap
    instr json_array json_array_length json_object json_quote json_type json_valid last_value length log10 log2 ltrim
    mod ntile nullif nth_value octet_length percent_rank pi power rank regexp_count regexp_like row_number rtrim sign
    square substr substring total trunc truncate quote to_char to_date to_timestamp to_number unhex degrees radians
    char ord now"""
)

FORMATTING = frozenset({"printf", "format"})
