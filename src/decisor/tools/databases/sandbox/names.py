"""The lists of the SQL guard. What is not on an allow list is refused."""

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
    Introducer IndexTableHint JSONSchema JSONColumnDef"""
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

FUNCTIONS = {
    "sqlite": COMMON
    | words(
        """date time datetime julianday strftime unixepoch timediff typeof unicode glob like likely unlikely likelihood
        group_concat string_agg iif json json_each json_tree json_extract json_patch json_set json_insert
        json_replace json_remove json_group_array json_group_object json_pretty json_error_position max min median
        percentile percentile_cont percentile_disc random abs octet_length soundex concat_ws pragma_table_info
        pragma_table_xinfo pragma_table_list pragma_foreign_key_list pragma_index_list pragma_index_info
        generate_series stddev variance subtype acosh asinh atanh"""
    ),
    "duckdb": COMMON
    | words(
        """age any_value arg_max arg_min array_agg array_length array_contains array_slice bar bit_count bool_and
        bool_or century concat_ws contains corr count_star covar_pop covar_samp current_date date_add date_diff
        date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear
        decade editdist3 element_at ends_with entropy epoch epoch_ms even fdiv favg first flatten floor fmod fsum gcd
        geomean geometric_mean greatest_common_divisor hamming histogram hour ilike_escape isfinite isinf isnan
        isodow isoyear jaccard jaro_similarity jaro_winkler_similarity json_extract json_extract_path
        json_extract_string json_keys json_structure kurtosis kurtosis_pop last last_day lcm least_common_multiple
        len like_escape list list_aggregate list_append list_avg list_concat list_contains list_count list_distinct
        list_extract list_filter list_has list_has_any list_max list_median list_min list_position list_reverse
        list_slice list_sort list_sum list_transform list_unique list_value list_zip mad make_date make_time
        make_timestamp map map_entries map_keys map_values max_by mean median min_by minute mode month monthname
        multiply nanosecond not_ilike_escape not_like_escape now ordinality parse_path percentile_cont percentile_disc
        position prefix product quantile quantile_cont quantile_disc quarter range regexp_extract regexp_extract_all
        regexp_full_match regexp_matches regexp_replace regexp_split_to_array regr_count regr_intercept regr_r2
        regr_slope round_even roundbankers row second sem signbit skewness starts_with stddev_pop stddev_samp
        str_split str_split_regex strftime string_agg string_split string_split_regex string_to_array strip_accents
        strlen strpos strptime struct_extract struct_pack suffix sumkahan time_bucket timezone to_days to_hours
        to_minutes to_months to_seconds to_weeks to_years today transaction_timestamp translate trim try_strptime
        typeof unnest var_pop var_samp week weekday weekofyear xor year yearweek generate_series generate_subscripts
        approx_count_distinct approx_quantile bitstring_agg json_array_elements json_each json_transform
        json_group_array json_group_object count_if grouping grouping_id union_value array_value"""
    ),
    "postgres": COMMON
    | words(
        """age array_agg array_append array_cat array_dims array_length array_lower array_ndims array_position
        array_positions array_prepend array_remove array_replace array_to_json array_to_string array_upper ascii
        bool_and bool_or btrim cardinality cbrt clock_timestamp concat_ws corr covar_pop covar_samp date_bin date_part
        date_trunc div encode decode factorial floor gcd generate_series generate_subscripts isfinite json_agg
        json_array_elements json_array_elements_text json_build_array json_build_object json_each json_each_text
        json_extract_path json_extract_path_text json_object_agg json_object_keys json_populate_record json_strip_nulls
        json_to_record json_to_recordset json_typeof jsonb_agg jsonb_array_elements jsonb_array_elements_text
        jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path
        jsonb_extract_path_text jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_match jsonb_path_query
        jsonb_path_query_array jsonb_path_query_first jsonb_pretty jsonb_set jsonb_strip_nulls jsonb_typeof
        jsonb_to_recordset justify_days justify_hours justify_interval lcm make_date make_interval make_time
        make_timestamp make_timestamptz md5 min_scale mode now num_nonnulls num_nulls numrange daterange int4range
        int8range tsrange tstzrange overlay percentile_cont percentile_disc position quote_ident quote_literal
        range_merge regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
        regexp_substr regexp_instr regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
        regr_syy reverse row_to_json scale split_part starts_with statement_timestamp stddev_pop stddev_samp string_agg
        string_to_array string_to_table strpos timeofday timezone to_ascii to_hex to_json to_jsonb to_tsquery
        to_tsvector plainto_tsquery ts_rank transaction_timestamp translate trim_array trim_scale unnest upper_inc
        lower_inc isempty upper_inf lower_inf var_pop var_samp width_bucket bit_count chr grouping ceiling
        format_type col_description obj_description pg_typeof random"""
    ),
    "mysql": COMMON
    | words(
        """adddate addtime any_value bin bit_and bit_count bit_or bit_xor ceiling coercibility concat_ws conv
        convert_tz crc32 curdate curtime date_add date_format date_sub datediff day dayname dayofmonth dayofweek
        dayofyear elt export_set field find_in_set format_bytes format from_base64 from_days from_unixtime get_format
        group_concat grouping hour inet_aton inet_ntoa interval isnull json_arrayagg json_contains json_contains_path
        json_depth json_exists json_extract json_keys json_length json_merge_patch json_merge_preserve json_objectagg
        json_overlaps json_pretty json_query json_search json_unquote json_value json_detailed json_compact last_day
        left lcase localtime locate lpad make_set makedate maketime md5 median microsecond mid minute month monthname
        nvl nvl2 oct period_add period_diff position quarter regexp_instr regexp_replace regexp_substr right rpad
        sec_to_time second sha1 sha2 soundex space std stddev_pop stddev_samp str_to_date strcmp subdate
        substring_index subtime sysdate time time_format time_to_sec timediff timestampadd timestampdiff to_base64
        to_days to_seconds ucase unix_timestamp utc_date utc_time utc_timestamp var_pop var_samp variance week weekday
        weekofyear weight_string year yearweek natural_sort_key percentile_cont percentile_disc"""
    ),
}
"""Functions that sqlglot has no class for, by dialect."""

READABLE = {
    "information_schema": words(
        """tables columns views schemata key_column_usage table_constraints referential_constraints
        constraint_column_usage check_constraints statistics"""
    ),
    "pg_catalog": words(
        """pg_class pg_namespace pg_attribute pg_type pg_constraint pg_index pg_tables pg_views pg_indexes pg_enum
        pg_description"""
    ),
}
"""Tables of the catalogs that hold no secrets."""

CATALOGS = {
    "sqlite": frozenset({"temp", "sqlite_temp_master"}),
    "duckdb": frozenset({"system", "temp", "pg_catalog"}),
    "postgres": frozenset({"pg_toast"}),
    "mysql": frozenset({"mysql", "performance_schema", "sys"}),
}
"""Schemas no statement may read, by dialect."""
