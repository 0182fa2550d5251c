SELECT k, c FROM (SELECT k, c, ROW_NUMBER() OVER (PARTITION BY c ORDER BY a DESC NULLS LAST, k) AS n FROM t) q WHERE n <= 2
-- columns: k BIGINT NOT NULL, c STRING
-- key: k
-- Project k := k, c := c
--   First 2 by row_number per c, order a desc, k
--     Scan t (k, a, c)

SELECT k, n FROM (SELECT k, RANK() OVER (PARTITION BY c ORDER BY a NULLS FIRST) AS n FROM t) q WHERE n < 3 AND 1 < n
-- columns: k BIGINT NOT NULL, n INT NOT NULL
-- key: k
-- Project k := k, n := rank
--   Filter (1 < rank)
--     First 2 by rank per c, order a
--       Scan t (k, a, c)

SELECT k FROM t QUALIFY DENSE_RANK() OVER (PARTITION BY c ORDER BY a NULLS FIRST) = 1
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   First 1 by dense_rank per c, order a
--     Scan t (k, a, c)

SELECT k, ROW_NUMBER() OVER (ORDER BY x DESC NULLS LAST, k) AS n FROM t QUALIFY n <= 3
-- columns: k BIGINT NOT NULL, n INT NOT NULL
-- key: k
-- Project k := k, n := row_number
--   First 3 by row_number, order x desc, k
--     Scan t (k, x)

SELECT k, a FROM t ORDER BY a DESC NULLS LAST, k LIMIT 2
-- columns: k BIGINT NOT NULL, a INT
-- key: k
-- Project k := k, a := a
--   First 2 by row_number, order a desc, k
--     Scan t (k, a)

SELECT k, a FROM t ORDER BY x NULLS FIRST, k LIMIT 2 OFFSET 1
-- columns: k BIGINT NOT NULL, a INT
-- key: k
-- Project k := k, a := a
--   First 2 after 1 by row_number, order x, k
--     Scan t (k, a, x)

SELECT c, n FROM (SELECT c, COUNT(*) AS n FROM t GROUP BY c ORDER BY n DESC, c NULLS FIRST LIMIT 2) q WHERE n > 1
-- columns: c STRING, n BIGINT NOT NULL
-- key: c
-- Project c := c, n := n
--   Filter (n > 1)
--     First 2 by row_number, order n desc, c
--       Aggregate by c: n := count_star()
--         Scan t (c)

SELECT * FROM (SELECT k, c, RANK() OVER (PARTITION BY c ORDER BY a NULLS FIRST) AS r FROM t) q WHERE r = 1 AND c = 'one'
-- columns: k BIGINT NOT NULL, c STRING, r INT NOT NULL
-- key: k
-- Project k := k, c := c, r := rank
--   First 1 by rank per c, order a
--     Filter (c = 'one')
--       Scan t (k, a, c)

SELECT k, SUM(a) OVER (PARTITION BY c ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s, LAG(a) OVER (PARTITION BY c ORDER BY k) AS p FROM t
-- columns: k BIGINT NOT NULL, s BIGINT, p INT
-- key: k
-- Project k := k, s := sum, p := lag
--   Window per c, order k: sum := sum(a) rows -1 to +1, lag := lag(a, 1)
--     Scan t (k, a, c)

SELECT k, SUM(a) OVER w AS s, COUNT(*) OVER (PARTITION BY b) AS n FROM t WINDOW w AS (PARTITION BY c ORDER BY a + 1 NULLS FIRST)
-- columns: k BIGINT NOT NULL, s BIGINT, n BIGINT NOT NULL
-- key: k
-- Project k := k, s := sum, n := count
--   Window per b: count := count_star()
--     Window per c, order __window_0: sum := sum(a) range first to current
--       Project k := k, a := a, b := b, c := c, __window_0 := (a + 1)
--         Scan t (k, a, b, c)

SELECT c, SUM(a) AS s, SUM(SUM(a)) OVER (PARTITION BY c) AS ss FROM t GROUP BY c
-- columns: c STRING, s BIGINT, ss BIGINT
-- key: c
-- Window per c: ss := sum(sum(a))
--   Aggregate by c: sum(a) := sum(argument of sum(a))
--     Project c := c, argument of sum(a) := a
--       Scan t (a, c)

SELECT k, n FROM (SELECT k, c, SUM(a) OVER (PARTITION BY c) AS unused, MAX(a) OVER (PARTITION BY c) AS n FROM t) q WHERE c = 'one'
-- columns: k BIGINT NOT NULL, n INT
-- key: k
-- Project k := k, n := max
--   Window per c: max := max(a)
--     Filter (c = 'one')
--       Scan t (k, a, c)

SELECT k, a + b AS z FROM t QUALIFY MAX(z) FILTER (WHERE z > 1) OVER (PARTITION BY c) = z
-- columns: k BIGINT NOT NULL, z INT
-- key: k
-- Project k := k, z := (a + b)
--   Filter (max = (a + b))
--     Window per c: max := max(__window_0) filter __window_1
--       Project k := k, a := a, b := b, c := c, __window_0 := (a + b), __window_1 := ((a + b) > 1)
--         Scan t (k, a, b, c)

SELECT c, SUM(a) AS s FROM t GROUP BY c QUALIFY s = MAX(s) OVER (PARTITION BY s > 1)
-- columns: c STRING, s BIGINT
-- key: c
-- Project c := c, s := sum(a)
--   Filter (sum(a) = max)
--     Window per __window_0: max := max(sum(a))
--       Project c := c, sum(a) := sum(a), __window_0 := (sum(a) > 1)
--         Aggregate by c: sum(a) := sum(argument of sum(a))
--           Project c := c, argument of sum(a) := a
--             Scan t (a, c)
