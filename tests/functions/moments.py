"""Sample calls of functions over dates, times and intervals."""

from __future__ import annotations

CALLS: dict[str, tuple[str, ...]] = {
    "add_months": ("add_months(DATE'2020-01-31', n)", "add_months(d, -1)"),
    "convert_timezone": (
        "convert_timezone('Europe/Paris', 'America/New_York', v)", "convert_timezone('Asia/Tokyo', v)",
    ),
    "current_timezone": ("current_timezone()",),
    "date_add": (
        "date_add(d, 1)", "date_add(DATE'2020-01-31', n)", "date_add(MONTH, n, TIMESTAMP'2020-01-31 10:00:00')",
    ),
    "date_sub": ("date_sub(d, 1)",),
    "dateadd": (
        "dateadd(d, 1)", "dateadd(DAY, -1, u)", "dateadd(HOUR, n, v)", "dateadd(QUARTER, 1, d)",
        "timestampadd(MICROSECOND, n, u)",
    ),
    "datediff": (
        "datediff(d, DATE'2000-01-01')", "datediff(u, v)", "datediff(MONTH, u, TIMESTAMP'2020-02-29 12:00:00')",
        "datediff(HOUR, v, u)", "timestampdiff(YEAR, u, TIMESTAMP'2000-01-01 00:00:00')",
    ),
    "date_diff": ("date_diff(d, DATE'2000-01-01')", "date_diff(WEEK, u, v)"),
    "date_format": (
        "date_format(u, 'yyyy-MM-dd HH:mm:ss.SSS')", "date_format(d, 'EEEE, d MMM y')", "date_format(v, 'HH')",
    ),
    "date_from_unix_date": ("date_from_unix_date(n)", "date_from_unix_date(y)"),
    "date_part": ("date_part('YEAR', d)", "date_part('SECONDS', u)", "date_part('days', make_dt_interval(n, 3))"),
    "datepart": ("datepart('week', u)", "datepart('dow', d)"),
    "date_trunc": ("date_trunc('MONTH', u)", "date_trunc('HOUR', v)", "date_trunc('WEEK', d)", "date_trunc('DAY', u)"),
    "trunc": ("trunc(d, 'MM')", "trunc(d, 'week')", "trunc(d, s)"), "day": ("day(d)", "day(u)"),
    "dayofmonth": ("dayofmonth(v)",), "dayname": ("dayname(d)", "dayname(u)"),
    "monthname": ("monthname(d)", "monthname(u)"), "dayofweek": ("dayofweek(d)",), "dayofyear": ("dayofyear(u)",),
    "weekday": ("weekday(d)",), "weekofyear": ("weekofyear(d)",), "month": ("month(d)", "month(u)"),
    "quarter": ("quarter(v)",), "year": ("year(d)", "year(u)", "year(v)"), "hour": ("hour(u)", "hour(v)"),
    "minute": ("minute(u)",), "second": ("second(u)",),
    "extract": (
        "extract(YEAR FROM d)", "extract(WEEK FROM u)", "extract(DOW FROM d)", "extract(DAYOFWEEK_ISO FROM d)",
        "extract(SECOND FROM u)", "extract(YEAROFWEEK FROM d)", "extract(MONTH FROM make_ym_interval(1, n))",
        "extract(HOUR FROM make_dt_interval(0, n))",
    ),
    "from_unixtime": ("from_unixtime(n)", "from_unixtime(l % 1000000000000, 'yyyy-MM')"),
    "from_utc_timestamp": ("from_utc_timestamp(u, 'America/New_York')", "from_utc_timestamp(v, '+05:30')"),
    "to_utc_timestamp": ("to_utc_timestamp(u, 'Europe/Paris')",), "last_day": ("last_day(d)",),
    "next_day": ("next_day(d, 'MON')", "next_day(d, 'friday')"),
    "months_between": (
        "months_between(u, TIMESTAMP'2000-02-29 12:00:00')", "months_between(d, DATE'1999-12-31', false)",
    ),
    "make_date": ("make_date(2020, 2, n + 1)", "make_date(n + 1, 1, 1)"),
    "make_dt_interval": ("make_dt_interval(n, 1, 2, 3.5)", "make_dt_interval()"),
    "make_interval": ("u + make_interval(0, n, 0, 1)", "string(make_interval(1, 2, 3, n))"),
    "try_make_interval": ("string(try_make_interval(1, n))",),
    "make_ym_interval": ("string(make_ym_interval(n, 2))", "d + make_ym_interval(1)"),
    "make_timestamp": (
        "make_timestamp(2014, 12, n + 1, 6, 30, 45.887)", "make_timestamp(2021, 3, 14, 2, 30, 0, 'America/New_York')",
    ),
    "make_timestamp_ltz": ("make_timestamp_ltz(2014, 12, 28, n, 30, 0)",),
    "make_timestamp_ntz": ("make_timestamp_ntz(2014, 12, 28, n, 30, 0)",),
    "try_make_timestamp": ("try_make_timestamp(2014, n, 31, 0, 0, 0)",),
    "try_make_timestamp_ltz": ("try_make_timestamp_ltz(2014, n, 31, 0, 0, 0)",),
    "try_make_timestamp_ntz": ("try_make_timestamp_ntz(2014, n, 31, 0, 0, 0)",),
    "time_bucket": ("time_bucket(INTERVAL '15' MINUTE, u)", "time_bucket(INTERVAL '1' HOUR, v)"),
    "timestamp_micros": ("timestamp_micros(l % 1000000000000000)",),
    "timestamp_millis": ("timestamp_millis(l % 1000000000000)",),
    "timestamp_seconds": ("timestamp_seconds(i)", "timestamp_seconds(e % 1000)"),
    "timestamp_nanos": ("string(timestamp_nanos(n))",),
    "to_date": ("to_date(string(d))", "to_date('31/12/2020', 'dd/MM/yyyy')", "to_date(u)"),
    "try_to_date": ("try_to_date(c)", "try_to_date(s, 'yyyy')"),
    "to_timestamp": (
        "to_timestamp('2021-03-14 02:30:00')", "to_timestamp('2016-12-31', 'yyyy-MM-dd')", "to_timestamp(d)",
    ),
    "try_to_timestamp": ("try_to_timestamp(if(n > 2, '2020-02-30', '2020-02-29'))", "try_to_timestamp(c, 'yyyy')"),
    "to_timestamp_ltz": ("to_timestamp_ltz('2016-12-31', 'yyyy-MM-dd')", "to_timestamp_ltz(u)"),
    "to_timestamp_ntz": ("to_timestamp_ntz('2016-12-31 00:12:00')", "to_timestamp_ntz(v)"),
    "to_unix_timestamp": ("to_unix_timestamp(u)", "to_unix_timestamp('2016-04-08', 'yyyy-MM-dd')"),
    "unix_timestamp": ("unix_timestamp(u)", "unix_timestamp('2016-04-08', 'yyyy-MM-dd')"),
    "unix_date": ("unix_date(d)",), "unix_micros": ("unix_micros(u)",), "unix_millis": ("unix_millis(u)",),
    "unix_seconds": ("unix_seconds(u)",),
}  # fmt: skip
