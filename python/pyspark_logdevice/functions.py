"""Functions for LSNs in queries: their parts, their text form, and LSNs from text.

There are four functions, as functions of columns here and, after `register(spark)`, as SQL functions of the
session. All are made of Spark's own expressions, so they are as fast as built-in functions.

    lsn_epoch(lsn)    the epoch: 5 of e5n3
    lsn_offset(lsn)   the number in the epoch: 3 of e5n3
    lsn_text(lsn)     the text e5n3
    lsn_parse(text)   the LSN for e5n3, an integer, oldest or max; an error for anything else
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql

from logdevice.types import EPOCH_MAX, ESN_BITS, ESN_MAX, LSN_MAX, LSN_OLDEST

# Leading zeros are allowed, but not more than ten digits.
_TEXT: Final = "^[eE]([0-9]{1,10})[nN]([0-9]{1,10})$"
_NUMBER: Final = "^[0-9]{1,19}$"
_SHAPES: Final = f"write it as e5n3, as an integer from 0 to {int(LSN_MAX)}, or as oldest or max"

_DEFINITIONS: Final = {
    "lsn_epoch(lsn BIGINT) RETURNS BIGINT": f"shiftrightunsigned(lsn, {ESN_BITS})",
    "lsn_offset(lsn BIGINT) RETURNS BIGINT": f"lsn & {ESN_MAX}",
    "lsn_text(lsn BIGINT) RETURNS STRING": (
        f"CASE WHEN lsn = {int(LSN_MAX)} THEN 'max' "
        f"ELSE concat('e', shiftrightunsigned(lsn, {ESN_BITS}), 'n', lsn & {ESN_MAX}) END"
    ),
    "lsn_parse(text STRING) RETURNS BIGINT": (
        "CASE WHEN text IS NULL THEN NULL "
        f"WHEN lower(trim(text)) = 'oldest' THEN {int(LSN_OLDEST)} "
        f"WHEN lower(trim(text)) = 'max' THEN {int(LSN_MAX)} "
        f"WHEN trim(text) RLIKE '{_NUMBER}' AND try_cast(trim(text) AS BIGINT) IS NOT NULL "
        "THEN try_cast(trim(text) AS BIGINT) "
        f"WHEN try_cast(regexp_extract(trim(text), '{_TEXT}', 1) AS BIGINT) <= {EPOCH_MAX} "
        f"AND try_cast(regexp_extract(trim(text), '{_TEXT}', 2) AS BIGINT) <= {ESN_MAX} "
        f"THEN shiftleft(try_cast(regexp_extract(trim(text), '{_TEXT}', 1) AS BIGINT), {ESN_BITS}) "
        f"+ try_cast(regexp_extract(trim(text), '{_TEXT}', 2) AS BIGINT) "
        f"ELSE CAST(raise_error(concat(text, ' is not an LSN; {_SHAPES}')) AS BIGINT) END"
    ),
}


def register(spark: SparkSession) -> None:
    """Defines `lsn_epoch`, `lsn_offset`, `lsn_text` and `lsn_parse` as SQL functions of this session.

    Calling it again replaces them.
    """
    for signature, body in _DEFINITIONS.items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {signature} RETURN {body}")


def lsn_epoch(lsn: Column | str) -> Column:
    """The epoch of an LSN: 5 of e5n3. `lsn` is a column, or the name of one."""
    return sql.shiftrightunsigned(lsn, ESN_BITS)


def lsn_offset(lsn: Column | str) -> Column:
    """The number of an LSN in its epoch: 3 of e5n3. `lsn` is a column, or the name of one."""
    return _column(lsn).bitwiseAND(sql.lit(ESN_MAX))


def lsn_text(lsn: Column | str) -> Column:
    """An LSN as text: `e5n3`, and `max` for the largest one. `lsn` is a column, or the name of one."""
    plain = sql.concat(sql.lit("e"), lsn_epoch(lsn), sql.lit("n"), lsn_offset(lsn))
    return sql.when(_column(lsn) == sql.lit(int(LSN_MAX)), "max").otherwise(plain)


def lsn_parse(text: Column | str) -> Column:
    """The LSN that a text stands for: `e5n3`, an integer, `oldest` or `max`, in upper or lower case.

    Null stays null. Any other text fails the query with an error that names it. `text` is a column, or the
    name of one.
    """
    given = _column(text)
    trimmed = sql.trim(given)
    number = sql.when(trimmed.rlike(_NUMBER), trimmed.try_cast("bigint"))
    epoch, offset = (sql.regexp_extract(trimmed, _TEXT, group).try_cast("bigint") for group in (1, 2))
    error = sql.raise_error(sql.concat(given, sql.lit(f" is not an LSN; {_SHAPES}"))).cast("bigint")
    return (
        sql.when(given.isNull(), sql.lit(None).cast("bigint"))
        .when(sql.lower(trimmed) == "oldest", sql.lit(int(LSN_OLDEST)))
        .when(sql.lower(trimmed) == "max", sql.lit(int(LSN_MAX)))
        .when(number.isNotNull(), number)
        .when(
            (epoch <= int(EPOCH_MAX)) & (offset <= ESN_MAX),
            sql.shiftleft(epoch, ESN_BITS) + offset,
        )
        .otherwise(error)
    )


def _column(given: Column | str) -> Column:
    return sql.col(given) if isinstance(given, str) else given
