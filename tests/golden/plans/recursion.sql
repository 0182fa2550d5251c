WITH RECURSIVE r (k, n) AS (SELECT k, 0 FROM t UNION ALL SELECT u.id, r.n + 1 FROM r JOIN u ON u.t_k = r.k WHERE r.n < 3) SELECT k, n FROM r
-- columns: k BIGINT NOT NULL, n INT NOT NULL
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
