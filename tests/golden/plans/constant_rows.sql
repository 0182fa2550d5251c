SELECT v.x, COUNT(t.k) AS n FROM (VALUES ('one'), ('no')) AS v(x) LEFT JOIN t ON t.c = v.x GROUP BY v.x
-- columns: x STRING NOT NULL, n BIGINT NOT NULL
-- key: x
-- Aggregate by col1: n := count(argument of count(k))
--   Project col1 := col1, argument of count(k) := k
--     Left join on col1 = c
--       Expand into 2 rows: pos, col1
--         Aggregate: __none := count_star()
--           Filter False
--             Scan t (k)
--       Scan t (k, c)

SELECT t.k, v.y FROM t FULL JOIN (VALUES (1, 'p'), (9, NULL)) AS v(x, y) ON v.x = t.a
-- columns: k BIGINT, y STRING
-- hidden: __key_0_pos INT
-- key: k, __key_0_pos
-- Project k := k, y := col2, __key_0_pos := pos
--   Full join on a = col1
--     Scan t (k, a)
--     Expand into 2 rows: pos, col1, col2
--       Aggregate: __none := count_star()
--         Filter False
--           Scan t (k)

SELECT t.k, r.x FROM t LEFT JOIN range(3) AS r(x) ON r.x = t.a
-- columns: k BIGINT NOT NULL, x BIGINT
-- hidden: __key_0_pos INT
-- key: k, __key_0_pos
-- Project k := k, x := id, __key_0_pos := pos
--   Left join on __join_0 = id
--     Project k := k, __join_0 := cast(a as bigint)
--       Scan t (k, a)
--     Generate pos, id := sequence(0, 2, 1)
--       Aggregate: __none := count_star()
--         Filter False
--           Scan t (k)

SELECT * FROM (VALUES ('one'), ('no')) AS v(c) LEFT SEMI JOIN t USING (c)
-- columns: c STRING NOT NULL
-- hidden: __key_0_pos INT NOT NULL
-- key: __key_0_pos
-- Project c := col1, __key_0_pos := pos
--   Semi join on col1 = c
--     Expand into 2 rows: pos, col1
--       Aggregate: __none := count_star()
--         Filter False
--           Scan t (k)
--     Scan t (k, c)

SELECT k FROM t LEFT ANTI JOIN (VALUES (1), (2)) AS v(a) USING (a)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Anti join on a = col1
--     Scan t (k, a)
--     Expand into 2 rows: pos, col1
--       Aggregate: __none := count_star()
--         Filter False
--           Scan t (k)

SELECT v.x, y, t.k FROM (VALUES (1), (9)) v(x) FULL JOIN (VALUES (9), (3)) w(y) ON y = v.x LEFT JOIN t ON t.a = v.x
-- columns: x INT, y INT, k BIGINT
-- hidden: __key_0_pos INT, __key_1_pos INT
-- key: __key_0_pos, __key_1_pos, k
-- Project x := col1, y := col1, k := k, __key_0_pos := pos, __key_1_pos := pos
--   Left join on col1 = a
--     Full join on col1 = col1
--       Expand into 2 rows: pos, col1
--         Aggregate: __none := count_star()
--           Filter False
--             Scan t (k)
--       Expand into 2 rows: pos, col1
--         Aggregate: __none := count_star()
--           Filter False
--             Scan t (k)
--     Scan t (k, a)

SELECT c FROM t UNION VALUES ('one'), ('no')
-- columns: c STRING
-- key: c
-- Aggregate by c
--   UnionAll
--     Scan t (c)
--     Expand into 2 rows: c
--       Aggregate: __none := count_star()
--         Filter False
--           Scan t (k)

WITH w(n) AS (VALUES (1), (7)) SELECT n, k FROM w LEFT JOIN t ON k = n
-- columns: n INT NOT NULL, k BIGINT
-- hidden: __key_0_pos INT NOT NULL
-- key: __key_0_pos
-- Project n := col1, k := k, __key_0_pos := __key_0_pos
--   Left join on __join_0 = k
--     Project col1 := col1, __key_0_pos := pos, __join_0 := cast(col1 as bigint)
--       Expand into 2 rows: pos, col1
--         Aggregate: __none := count_star()
--           Filter False
--             Scan t (k)
--     Scan t (k)

SELECT k, (SELECT COUNT(u.id) FROM (VALUES (1), (2)) v(x) LEFT JOIN u ON u.v = v.x AND u.t_k = k) AS n FROM t
-- columns: k BIGINT NOT NULL, n BIGINT
-- key: k
-- Project k := k, n := coalesce(count(id), 0)
--   Left join on k <=> outer_0
--     Scan t (k)
--     Aggregate by outer_0: count(id) := count(argument of count(id))
--       Project outer_0 := outer_0, argument of count(id) := id
--         Left join on col1 = v AND outer_0 = t_k
--           Expand into 2 rows: outer_0, pos, col1
--             Aggregate by k
--               Scan t (k)
--           Scan u (id, t_k, v)

SELECT k, e.x FROM t LEFT JOIN LATERAL explode(array(c, 'two')) AS e(x) ON e.x <> c
-- columns: k BIGINT NOT NULL, x STRING
-- hidden: __key_0_pos INT
-- key: k, __key_0_pos
-- Project k := k, x := col, __key_0_pos := __key_0_pos
--   Left join on c <=> tie_0 where (col <> c)
--     Scan t (k, c)
--     Project col := col, tie_0 := outer_0, __key_0_pos := pos
--       Generate pos, col := array(outer_0, 'two')
--         Aggregate by c
--           Scan t (c)
