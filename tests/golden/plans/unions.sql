SELECT a FROM t UNION ALL SELECT v FROM u
-- columns: a INT
-- hidden: __branch INT NOT NULL, __key_0_k BIGINT, __key_1_id INT
-- key: __branch, __key_0_k, __key_1_id
-- UnionAll
--   Project a := a, __branch := 0, __key_0_k := k, __key_1_id := NULL
--     Scan t (k, a)
--   Project a := v, __branch := 1, __key_0_k := NULL, __key_1_id := id
--     Scan u (id, v)

SELECT a AS p, c FROM t WHERE a > 1 UNION ALL SELECT x, NULL FROM t UNION ALL SELECT v, name FROM u
-- columns: p DOUBLE, c STRING
-- hidden: __branch INT NOT NULL, __key_0_k BIGINT, __key_1_k BIGINT, __key_2_id INT
-- key: __branch, __key_0_k, __key_1_k, __key_2_id
-- UnionAll
--   Project p := cast(a as double), c := c, __branch := 0, __key_0_k := k, __key_1_k := NULL, __key_2_id := NULL
--     Filter (a > 1)
--       Scan t (k, a, c)
--   Project p := x, c := cast(NULL as string), __branch := 1, __key_0_k := NULL, __key_1_k := k, __key_2_id := NULL
--     Scan t (k, x)
--   Project p := cast(v as double), c := name, __branch := 2, __key_0_k := NULL, __key_1_k := NULL, __key_2_id := id
--     Scan u (id, v, name)

SELECT p, COUNT(*) AS n FROM (SELECT a AS p FROM t UNION ALL SELECT v FROM u) AS q WHERE p > 1 GROUP BY p
-- columns: p INT, n BIGINT NOT NULL
-- key: p
-- Aggregate by p: n := count_star()
--   UnionAll
--     Filter (a > 1)
--       Scan t (a)
--     Filter (v > 1)
--       Scan u (v)

SELECT k, a FROM t UNION ALL SELECT 5, 6 WHERE 1 < 2
-- columns: k BIGINT NOT NULL, a INT
-- hidden: __branch INT NOT NULL, __key_0_k BIGINT
-- key: __branch, __key_0_k
-- UnionAll
--   Project k := k, a := a, __branch := 0, __key_0_k := k
--     Scan t (k, a)
--   Project k := cast(5 as bigint), a := 6, __branch := 1, __key_0_k := NULL
--     Aggregate: __none := count_star()
--       Filter False
--         Scan t (k)

SELECT k, z FROM t LEFT JOIN (SELECT 1 AS z UNION ALL SELECT 2) q ON a = z
-- columns: k BIGINT NOT NULL, z INT
-- hidden: __key_0___branch INT
-- key: k, __key_0___branch
-- Project k := k, z := z, __key_0___branch := __branch
--   Left join on a = z
--     Scan t (k, a)
--     UnionAll
--       Project z := 1, __branch := 0
--         Aggregate: __none := count_star()
--           Filter False
--             Scan t (k)
--       Project z := 2, __branch := 1
--         Aggregate: __none := count_star()
--           Filter False
--             Scan t (k)
