SELECT k, a + 1 AS next FROM t WHERE b > 0
-- columns: k BIGINT NOT NULL, next INT
-- key: k
-- Project k := k, next := (a + 1)
--   Filter (b > 0)
--     Scan t (k, a, b)

SELECT b AS c FROM (SELECT a AS b, c FROM t WHERE a > 1) AS q
-- columns: c INT
-- hidden: __key_0_k BIGINT NOT NULL
-- key: __key_0_k
-- Project c := a, __key_0_k := k
--   Filter (a > 1)
--     Scan t (k, a)

SELECT * FROM t WHERE TRUE
-- columns: k BIGINT NOT NULL, a INT, b INT, c STRING, x DOUBLE, tags ARRAY<STRING>
-- key: k
-- Scan t (k, a, b, c, x, tags)

SELECT c AS z, UPPER(c) FROM t WHERE a = 1 AND b = 2 OR c IS NULL
-- columns: z STRING, upper(c) STRING
-- hidden: __key_0_k BIGINT NOT NULL
-- key: __key_0_k
-- Project z := c, upper(c) := upper(c), __key_0_k := k
--   Filter (((a = 1) AND (b = 2)) OR is_null(c))
--     Scan t (k, a, b, c)

SELECT a + 1 AS z, z * 2 AS y FROM t
-- columns: z INT, y INT
-- hidden: __key_0_k BIGINT NOT NULL
-- key: __key_0_k
-- Project z := (a + 1), y := ((a + 1) * 2), __key_0_k := k
--   Scan t (k, a)

SELECT den, CASE WHEN den <> 0 THEN r END AS safe FROM (SELECT a / b AS r, b AS den FROM t) AS q WHERE den > 3
-- columns: den INT, safe DOUBLE
-- hidden: __key_0_k BIGINT NOT NULL
-- key: __key_0_k
-- Project den := b, safe := case((b <> 0), (cast(a as double) / cast(b as double)), NULL), __key_0_k := k
--   Filter (b > 3)
--     Scan t (k, a, b)

WITH q AS (SELECT k, a FROM t), r (k, z) AS (SELECT k, a + 1 FROM q) SELECT z, k FROM r
-- columns: z INT, k BIGINT NOT NULL
-- key: k
-- Project z := (a + 1), k := k
--   Scan t (k, a)

SELECT k FROM t WHERE NOT (a BETWEEN 3 AND 5) AND (b > 1) IS NOT TRUE
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Filter (not(((a >= 3) AND (a <= 5))) AND not(((b > 1) <=> True)))
--     Scan t (k, a, b)
