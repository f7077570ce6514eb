"""Lists the functions of Spark: which may be called in an expression, and why the others may not.

An expression is evaluated again whenever its row is looked at, by every version of a program that uses the same Spark.
So a function may be called if its value depends on its arguments alone. The file is read without a JVM, so the lists
stand here; a test holds them against Spark's own. A function that is on no list is refused.
"""

from collections.abc import Mapping
from types import MappingProxyType


def words(text: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(text.split())


_TEXT = words("""
    base64 btrim concat concat_ws decode elt encode format_number format_string initcap lcase left lower lpad
    ltrim make_valid_utf8 mask overlay printf quote regexp_extract regexp_replace regexp_substr repeat replace reverse
    right rpad rtrim soundex split_part string substr substring substring_index to_char to_varchar translate trim
    try_validate_utf8 ucase unbase64 unhex upper url_decode url_encode try_url_decode validate_utf8
    bin conv hex md5 sha sha1 sha2 get_json_object to_json parse_url try_parse_url
""")
_CHOICES = words("""
    array_max array_min coalesce element_at get greatest if ifnull least nullif nvl nvl2 try_element_at
""")
GIVE_TEXT = _TEXT | _CHOICES
"""Functions that may make a text of texts. Among constants that may be a word of the clock."""
DATES = words("""
    add_months convert_timezone date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour
    last_day make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz
    make_ym_interval minute month monthname months_between next_day quarter second timestamp timestamp_micros
    timestamp_millis timestamp_seconds to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp
    to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz
    try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year
""")
"""Functions of dates and times."""
_NUMBERS = words("""
    abs acos acosh asin asinh atan atan2 atanh bround cbrt ceil ceiling cos cosh cot csc degrees e exp expm1 factorial
    floor hypot isnan ln log log10 log1p log2 mod nanvl negative nullifzero pi pmod positive pow power radians rint
    round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_mod
    try_multiply try_subtract width_bucket zeroifnull bit_count bit_get getbit
    bitmap_bit_position bitmap_bucket_number bitmap_count crc32 hash xxhash64 vector_cosine_similarity
    vector_inner_product vector_l2_distance vector_norm vector_normalize
    bigint decimal double float int smallint tinyint to_number try_to_number
""")
_OF_TEXT = words("""
    ascii binary bit_length boolean char char_length character_length chr contains endswith equal_null find_in_set instr
    is_valid_utf8 isnotnull isnull json_array_length len length levenshtein locate luhn_check octet_length position
    regexp_count regexp_instr regexp_like space startswith to_binary try_to_binary cast try_cast
""")
_NESTED = words("""
    array array_append array_compact array_contains array_distinct array_except array_insert array_intersect array_join
    array_position array_prepend array_remove array_repeat array_size array_union arrays_overlap arrays_zip cardinality
    flatten json_object_keys map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys
    map_values named_struct regexp_extract_all sequence size slice sort_array split str_to_map struct
""")

FUNCTIONS = GIVE_TEXT | DATES | _NUMBERS | _OF_TEXT | _NESTED
"""Functions of Spark that give the same value for the same row, whenever and wherever they run."""

SYNTAX = words("""
    and or not in case when then else between like ilike rlike regexp is div dec numeric varchar
""")
"""Words that stand before a parenthesis without calling anything, or call what the sign for it does."""
SIGNS = words("! != <> < <= <=> = == > >= % * + - / & | ^ ~ << >> >>> ||")
"""Functions that Spark lists by their sign."""

_OTHER_EACH_TIME = "gives another value each time or place it runs"
NOT_CONSTANT = words("""
    rand randn random randstr uniform uuid shuffle now curdate current_date current_time current_timestamp
    localtimestamp current_timezone current_user session_user user current_catalog current_database current_path
    current_schema input_file_name input_file_block_length input_file_block_start monotonically_increasing_id
    spark_partition_id reflect java_method try_reflect version
""")
"""Functions that read the outside, or draw lots."""
_REASONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        _OTHER_EACH_TIME: NOT_CONSTANT,
        "encrypts, by default with other random bytes each time": words("aes_encrypt"),
        "takes a secret key, which does not belong into a configuration": words(
            "aes_decrypt try_aes_decrypt"
        ),
        "runs code, or reads files or the network": words("""
            ai_query http_request read_files from_avro to_avro schema_of_avro from_protobuf to_protobuf
        """),
        "reads XML, which may name files": words("""
            from_xml schema_of_xml to_xml xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number
            xpath_short xpath_string
        """),
        "gives no value but an error; a record that should not be read belongs in another source": words(
            "assert_true raise_error"
        ),
        "changes when a column gets a wider type": words("typeof"),
        "depends on the language of the machine": words("sentences"),
        "changes how texts are compared": words("collate collation"),
        "makes several rows": words("""
            collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer
            python_worker_logs range sql_keywords stack table_changes table_changes_by_path variant_explode
            variant_explode_outer
        """),
        "is a window function": words("""
            cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window window_time
        """),
        "takes a lambda": words("""
            aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys
            transform_values zip_with
        """),
        "is an aggregate": words("""
            any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
            approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
            bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every
            first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kurtosis last
            last_value listagg max max_by mean measure median min min_by mode percentile percentile_approx
            percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
            regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum
            try_avg try_sum var_pop var_samp variance vector_avg vector_sum
        """),
        "is of a type that no column can have": words("""
            is_valid_variant is_variant_null parse_json schema_of_variant to_variant_object try_parse_json
            try_variant_get variant_get st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid
            make_time time time_bucket time_diff time_from_micros time_from_millis time_from_seconds time_to_micros
            time_to_millis time_to_seconds time_trunc to_time try_to_time
        """),
        "has a schema of its own; declare the type of the column": words("""
            from_csv from_json schema_of_csv schema_of_json to_csv
        """),
    }
)
_SKETCHES = ("approx_top_k_", "hll_", "kll_", "theta_", "tuple_")
"""How the functions of sketches begin; there are sixty, none of which belongs in a key."""


def refusal(name: str) -> str | None:
    """Why a function may not be called; None for one that may, and for one that is on no list."""
    for reason, names in _REASONS.items():
        if name in names:
            return reason
    return "is of sketches, which are estimates" if name.startswith(_SKETCHES) else None
