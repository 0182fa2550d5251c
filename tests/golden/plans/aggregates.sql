SELECT c, SUM(a) AS s, COUNT(*) AS n FROM t GROUP BY c
-- columns: c STRING, s BIGINT, n BIGINT NOT NULL
-- key: c
-- Aggregate by c: s := sum(argument of sum(a)), n := count_star()
--   Project c := c, argument of sum(a) := a
--     Scan t (a, c)

SELECT COUNT(*) AS n, SUM(a) AS s, AVG(a) AS m, MIN(c) AS lo, MAX(x) AS hi FROM t
-- columns: n BIGINT NOT NULL, s BIGINT, m DOUBLE, lo STRING, hi DOUBLE
-- key: none: one row
-- Aggregate: n := count_star(), s := sum(a), m := avg(a), lo := min(c), hi := max(x)
--   Scan t (a, c, x)

SELECT c, SUM(a) / COUNT(*) AS r, COUNT(*) FILTER (WHERE a > 1) AS f FROM t GROUP BY c HAVING SUM(a) > 2
-- columns: c STRING, r DOUBLE, f BIGINT NOT NULL
-- key: c
-- Project c := c, r := (cast(sum(a) as double) / cast(count(*) as double)), f := count(*) where (a > 1)
--   Filter (sum(a) > 2)
--     Aggregate by c: sum(a) := sum(argument of sum(a)), count(*) := count_star(), count(*) where (a > 1) := count_star() filter filter of count(*) where (a > 1)
--       Project c := c, argument of sum(a) := a, filter of count(*) where (a > 1) := (a > 1)
--         Scan t (a, c)

SELECT a % 2 AS odd, COUNT(b) AS n FROM t GROUP BY 1
-- columns: odd INT, n BIGINT NOT NULL
-- key: odd
-- Aggregate by (a % 2): n := count(argument of count(b))
--   Project (a % 2) := (a % 2), argument of count(b) := b
--     Scan t (a, b)

SELECT UPPER(c) AS u, COUNT(*) AS n FROM t GROUP BY u
-- columns: u STRING, n BIGINT NOT NULL
-- key: u
-- Aggregate by upper(c): n := count_star()
--   Project upper(c) := upper(c)
--     Scan t (c)

SELECT c, a, MAX(b) + 1 AS m FROM t GROUP BY ALL
-- columns: c STRING, a INT, m INT
-- key: c, a
-- Project c := c, a := a, m := (max(b) + 1)
--   Aggregate by c, a: max(b) := max(argument of max(b))
--     Project c := c, a := a, argument of max(b) := b
--       Scan t (a, b, c)

SELECT n FROM (SELECT COUNT(*) AS n FROM t GROUP BY c) AS q WHERE n > 1
-- columns: n BIGINT NOT NULL
-- hidden: __key_0_c STRING
-- key: __key_0_c
-- Project n := count(*), __key_0_c := c
--   Filter (count(*) > 1)
--     Aggregate by c: count(*) := count_star()
--       Scan t (c)

SELECT c, s FROM (SELECT c, SUM(a) AS s FROM t GROUP BY c) AS q WHERE c LIKE 'o%' AND s > 3
-- columns: c STRING, s BIGINT
-- key: c
-- Filter (s > 3)
--   Aggregate by c: s := sum(argument of sum(a))
--     Project c := c, argument of sum(a) := a
--       Filter like(c, 'o%')
--         Scan t (a, c)

SELECT COUNT(a, b) AS n FROM t
-- columns: n BIGINT NOT NULL
-- key: none: one row
-- Aggregate: n := count(argument of count(a, b))
--   Project argument of count(a, b) := case((is_not_null(a) AND is_not_null(b)), 1, NULL)
--     Scan t (a, b)

SELECT MAX(n) AS m FROM (SELECT c, COUNT(*) AS n FROM t GROUP BY c) AS q
-- columns: m BIGINT
-- key: none: one row
-- Aggregate: m := max(argument of max(n))
--   Project argument of max(n) := n
--     Aggregate by c: n := count_star()
--       Scan t (c)

SELECT b, a > 1 AS g, GROUPING(a > 1) AS m, COUNT(*) AS n FROM t GROUP BY CUBE(b, a > 1)
-- columns: b INT, g BOOLEAN, m TINYINT NOT NULL, n BIGINT NOT NULL
-- hidden: __key_0___grouping INT NOT NULL
-- key: b, g, __key_0___grouping
-- Project b := b, g := (a > 1), m := case((__grouping = 0), 0, (__grouping = 1), 1, (__grouping = 2), 0, 1), n := count(*), __key_0___grouping := __grouping
--   Aggregate by b, (a > 1), __grouping: count(*) := count_star()
--     Expand into 4 rows: b, (a > 1), __grouping
--       Project b := b, (a > 1) := (a > 1)
--         Scan t (a, b)

SELECT 1 AS one FROM u HAVING TRUE
-- columns: one INT NOT NULL
-- key: none: one row
-- Project one := 1
--   Aggregate: count(*) := count_star()
--     Scan u (id)
