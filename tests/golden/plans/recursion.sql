WITH RECURSIVE r (k, n) AS (SELECT k, 0 FROM t UNION ALL SELECT u.id, r.n + 1 FROM r JOIN u ON u.t_k = r.k WHERE r.n < 3) SELECT k, n FROM r
-- columns: k BIGINT NOT NULL, n INT
-- hidden: __key_0___round INT NOT NULL, __key_1___copy BIGINT NOT NULL
-- key: k, n, __key_0___round, __key_1___copy
-- Repeat
--   Recursion
--     Project k := k, n := 0
--       Scan t (k)
--     Project k := cast(id as bigint), n := (n + 1), __round := (__round + 1), __count := __count
--       Join on k = t_k
--         Filter (n < 3)
--           RecursiveScan
--         Scan u (id, t_k)

WITH RECURSIVE r AS (SELECT a FROM t WHERE b > 2 UNION SELECT u.v FROM r JOIN u ON u.id = r.a) SELECT a FROM r
-- columns: a INT
-- key: a
-- Recursion
--   Project a := a
--     Filter (b > 2)
--       Scan t (a, b)
--   Project a := v
--     Join on a = id
--       RecursiveScan
--       Scan u (id, v)

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT r.n, COUNT(t.k) AS c FROM r LEFT JOIN t ON t.a = r.n GROUP BY r.n
-- columns: n INT, c BIGINT NOT NULL
-- key: n
-- Aggregate by n: c := count(argument of count(k))
--   Project n := n, argument of count(k) := k
--     Left join on n = a
--       Repeat
--         Recursion
--           Project n := 1
--             Aggregate: __none := count_star()
--               Filter False
--                 Scan t (k)
--           Project n := (n + 1), __round := (__round + 1), __count := __count
--             Filter (n < 4)
--               RecursiveScan
--       Scan t (k, a)

WITH RECURSIVE r(n) AS (VALUES (1), (7) UNION SELECT n * 2 FROM r WHERE n < 5) SELECT k, n FROM t JOIN r ON t.a <= r.n
-- columns: k BIGINT NOT NULL, n INT
-- key: k, n
-- Project k := k, n := n
--   Join of all pairs where (a <= n), seeks a <= n on the left, n >= a on the right
--     Scan t (k, a)
--     Recursion
--       Project n := col1
--         Expand into 2 rows: col1
--           Aggregate: __none := count_star()
--             Filter False
--               Scan t (k)
--       Project n := (n * 2)
--         Filter (n < 5)
--           RecursiveScan
