SELECT t.k, q.v FROM t, LATERAL (SELECT v FROM u WHERE u.t_k = t.k) q
-- columns: k BIGINT NOT NULL, v INT
-- hidden: __key_0_id INT NOT NULL
-- key: k, __key_0_id
-- Project k := k, v := v, __key_0_id := id
--   Join on k = t_k
--     Scan t (k)
--     Scan u (id, t_k, v)

SELECT t.k, q.s, q.n FROM t, LATERAL (SELECT SUM(v) AS s, COUNT(*) AS n FROM u WHERE u.t_k = t.k) q
-- columns: k BIGINT NOT NULL, s BIGINT, n BIGINT NOT NULL
-- key: k
-- Project k := k, s := sum(v), n := coalesce(count(*), 0)
--   Left join on k = t_k
--     Scan t (k)
--     Aggregate by t_k: sum(v) := sum(v), count(*) := count_star()
--       Scan u (t_k, v)

SELECT t.k, q.s FROM t LEFT JOIN LATERAL (SELECT SUM(v) AS s FROM u WHERE u.t_k = t.k HAVING COUNT(*) > 1) q ON true
-- columns: k BIGINT NOT NULL, s BIGINT
-- key: k
-- Project k := k, s := sum(v)
--   Left join on k <=> k
--     Scan t (k)
--     Filter (count(*) > 1)
--       Project k := k, sum(v) := sum(v), count(*) := coalesce(count(*), 0)
--         Left join on k = t_k
--           Aggregate by k
--             Scan t (k)
--           Aggregate by t_k: sum(v) := sum(v), count(*) := count_star()
--             Scan u (t_k, v)

SELECT t.k, q.n FROM t LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.v > t.a) q ON q.n > t.k
-- columns: k BIGINT NOT NULL, n BIGINT
-- key: k
-- Project k := k, n := count(*)
--   Left join on a <=> a where (count(*) > k), seeks k < count(*) on the left
--     Scan t (k, a)
--     Project a := a, count(*) := coalesce(count(*), 0)
--       Left join on a <=> outer_0
--         Aggregate by a
--           Scan t (a)
--         Aggregate by outer_0: count(*) := count_star()
--           Project outer_0 := outer_0
--             Join of all pairs where (v > outer_0), seeks outer_0 < v on the left, v > outer_0 on the right
--               Aggregate by a
--                 Scan t (a)
--               Scan u (id, v)

SELECT t.k, q.id FROM t LEFT JOIN LATERAL (SELECT id, v FROM u WHERE u.t_k = t.k) q ON q.v > t.b
-- columns: k BIGINT NOT NULL, id INT
-- key: k, id
-- Project k := k, id := id
--   Left join on k = tie_0 where (v > b), seeks v > b on the right
--     Scan t (k, b)
--     Project id := id, v := v, tie_0 := t_k
--       Scan u (id, t_k, v)

SELECT t.k, q.id, q.v FROM t, LATERAL (SELECT id, v FROM u WHERE u.t_k = t.k ORDER BY v DESC NULLS LAST, id LIMIT 1) q
-- columns: k BIGINT NOT NULL, id INT NOT NULL, v INT
-- key: k, id
-- Project k := k, id := id, v := v
--   Join on k = tie_0
--     Scan t (k)
--     First 1 by row_number per tie_0, order v desc, id
--       Project id := id, v := v, tie_0 := t_k
--         Scan u (id, t_k, v)

SELECT t.k, q.id FROM t LEFT JOIN LATERAL (SELECT id FROM u WHERE u.v >= t.a ORDER BY v NULLS FIRST, id LIMIT 2 OFFSET 1) q ON true
-- columns: k BIGINT NOT NULL, id INT
-- key: k, id
-- Project k := k, id := id
--   Left join on a <=> tie_0
--     Scan t (k, a)
--     First 2 after 1 by row_number per tie_0, order tie_1, id
--       Project id := id, tie_0 := outer_0, tie_1 := v
--         Join of all pairs where (v >= outer_0), seeks outer_0 <= v on the left, v >= outer_0 on the right
--           Aggregate by a
--             Scan t (a)
--           Scan u (id, v)

SELECT t.k, q.x, q.y FROM t, LATERAL (SELECT t.a + 1 AS x, t.a * t.b AS y) q WHERE q.y > 2
-- columns: k BIGINT NOT NULL, x INT, y INT
-- key: k
-- Filter (y > 2)
--   Project k := k, x := (a + 1), y := (a * b)
--     Scan t (k, a, b)

SELECT t.k, q.x FROM t LEFT JOIN LATERAL (SELECT t.a + 1 AS x WHERE t.b > 2) q ON q.x < 4
-- columns: k BIGINT NOT NULL, x INT
-- key: k
-- Project k := k, x := case((there AND (x < 4)), x, NULL)
--   Project k := k, x := case((b > 2), (a + 1), NULL), there := (b > 2)
--     Scan t (k, a, b)

SELECT t.k, q.y FROM t, LATERAL (SELECT v + t.a AS y FROM u WHERE u.t_k = t.k) q
-- columns: k BIGINT NOT NULL, y INT
-- hidden: __key_0_id INT NOT NULL
-- key: k, __key_0_id
-- Project k := k, y := (v + a), __key_0_id := id
--   Join on k = t_k
--     Scan t (k, a)
--     Scan u (id, t_k, v)

SELECT t.k, q.y FROM t LEFT JOIN LATERAL (SELECT COALESCE(t.a, v) AS y FROM u WHERE u.t_k = t.k) q ON true
-- columns: k BIGINT NOT NULL, y INT
-- hidden: __key_0_id INT
-- key: k, __key_0_id
-- Project k := k, y := y, __key_0_id := __key_0_id
--   Left join on a <=> tie_0 AND k <=> tie_1
--     Scan t (k, a)
--     Project y := coalesce(outer_0, v), tie_0 := outer_0, tie_1 := outer_1, __key_0_id := id
--       Join on outer_1 = t_k
--         Aggregate by outer_0, outer_1
--           Project outer_0 := a, outer_1 := k
--             Scan t (k, a)
--         Scan u (id, t_k, v)

SELECT t.k, q.name, q.m FROM t, LATERAL (SELECT name, MAX(v) AS m FROM u WHERE u.t_k = t.k GROUP BY name) q
-- columns: k BIGINT NOT NULL, name STRING, m INT
-- key: k, name
-- Project k := k, name := name, m := m
--   Join on k = tie_0
--     Scan t (k)
--     Project name := name, m := max(v), tie_0 := t_k
--       Aggregate by t_k, name: max(v) := max(argument of max(v))
--         Project t_k := t_k, name := name, argument of max(v) := v
--           Scan u (t_k, v, name)

SELECT t.k, q.name FROM t, LATERAL (SELECT DISTINCT name FROM u WHERE u.t_k = t.k) q
-- columns: k BIGINT NOT NULL, name STRING
-- key: k, name
-- Project k := k, name := name
--   Join on k = tie_0
--     Scan t (k)
--     Aggregate by name, tie_0
--       Project name := name, tie_0 := t_k
--         Scan u (t_k, name)

SELECT t.k, q.id, q.r FROM t, LATERAL (SELECT id, ROW_NUMBER() OVER (ORDER BY v DESC NULLS LAST, id) AS r FROM u WHERE u.t_k = t.k) q
-- columns: k BIGINT NOT NULL, id INT NOT NULL, r INT NOT NULL
-- key: k, id
-- Project k := k, id := id, r := r
--   Join on k = tie_0
--     Scan t (k)
--     Project id := id, r := row_number, tie_0 := t_k
--       Window per t_k, order v desc, id: row_number := row_number()
--         Scan u (id, t_k, v)

SELECT t.k, q.x FROM t, LATERAL (SELECT t.a AS x UNION ALL SELECT v FROM u WHERE u.t_k = t.k) q
-- columns: k BIGINT NOT NULL, x INT
-- hidden: __key_0___branch INT NOT NULL, __key_1_outer_0 INT, __key_2_outer_1 BIGINT, __key_3_outer_0 INT, __key_4_outer_1 BIGINT, __key_5_id INT
-- key: k, __key_0___branch, __key_1_outer_0, __key_2_outer_1, __key_3_outer_0, __key_4_outer_1, __key_5_id
-- Project k := k, x := x, __key_0___branch := __branch, __key_1_outer_0 := __key_0_outer_0, __key_2_outer_1 := __key_1_outer_1, __key_3_outer_0 := __key_2_outer_0, __key_4_outer_1 := __key_3_outer_1, __key_5_id := __key_4_id
--   Join on a <=> outer AND k <=> outer
--     Scan t (k, a)
--     UnionAll
--       Project outer := outer_0, outer := outer_1, x := outer_0, __branch := 0, __key_0_outer_0 := outer_0, __key_1_outer_1 := outer_1, __key_2_outer_0 := NULL, __key_3_outer_1 := NULL, __key_4_id := NULL
--         Aggregate by outer_0, outer_1
--           Project outer_0 := a, outer_1 := k
--             Scan t (k, a)
--       Project outer := outer_0, outer := outer_1, x := v, __branch := 1, __key_0_outer_0 := NULL, __key_1_outer_1 := NULL, __key_2_outer_0 := outer_0, __key_3_outer_1 := outer_1, __key_4_id := id
--         Join on outer_1 = t_k
--           Aggregate by outer_0, outer_1
--             Project outer_0 := a, outer_1 := k
--               Scan t (k, a)
--           Scan u (id, t_k, v)

SELECT t.k, q.m FROM t, LATERAL (SELECT MAX(s) AS m FROM (SELECT name, SUM(v) AS s FROM u WHERE u.t_k = t.k GROUP BY name) z) q
-- columns: k BIGINT NOT NULL, m BIGINT
-- key: k
-- Project k := k, m := max(s)
--   Left join on k <=> outer_0
--     Scan t (k)
--     Aggregate by outer_0: max(s) := max(argument of max(s))
--       Project outer_0 := outer_0, argument of max(s) := s
--         Join on outer_0 = tie_0
--           Aggregate by k
--             Scan t (k)
--           Project name := name, s := sum(v), tie_0 := t_k
--             Aggregate by t_k, name: sum(v) := sum(argument of sum(v))
--               Project t_k := t_k, name := name, argument of sum(v) := v
--                 Scan u (t_k, v, name)

SELECT t.k, p.v, q.n FROM t, LATERAL (SELECT v FROM u WHERE u.t_k = t.k) p, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.id > p.v) q
-- columns: k BIGINT NOT NULL, v INT, n BIGINT NOT NULL
-- hidden: __key_0_id INT NOT NULL
-- key: k, __key_0_id
-- Project k := k, v := v, n := coalesce(count(*), 0), __key_0_id := id
--   Left join on v <=> outer_0
--     Join on k = t_k
--       Scan t (k)
--       Scan u (id, t_k, v)
--     Aggregate by outer_0: count(*) := count_star()
--       Project outer_0 := outer_0
--         Join of all pairs where (id > outer_0), seeks outer_0 < id on the left, id > outer_0 on the right
--           Aggregate by outer_0
--             Project outer_0 := v
--               Join on k = t_k
--                 Scan t (k)
--                 Scan u (id, t_k, v)
--           Scan u (id)

SELECT k, (SELECT v FROM u WHERE u.t_k = t.k ORDER BY v DESC NULLS LAST, id LIMIT 1) AS v FROM t
-- columns: k BIGINT NOT NULL, v INT
-- key: k
-- Project k := k, v := only_row(min, count_star)
--   Left join on k = in_0
--     Scan t (k)
--     Aggregate by in_0: min := min(in_1), count_star := count_star()
--       Project in_0 := tie_0, in_1 := v
--         First 1 by row_number per tie_0, order v desc, tie_1
--           Project v := v, tie_0 := t_k, tie_1 := id
--             Scan u (id, t_k, v)

SELECT k FROM t WHERE a IN (SELECT v FROM u WHERE u.t_k = t.k UNION SELECT id FROM u WHERE name = c)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Semi join on k <=> outer AND c <=> outer AND a = v
--     Scan t (k, a, c)
--     Aggregate by outer, outer, v
--       UnionAll
--         Project outer := outer_0, outer := outer_1, v := v
--           Join on outer_0 = t_k
--             Aggregate by k, c
--               Scan t (k, c)
--             Scan u (id, t_k, v)
--         Project outer := outer_0, outer := outer_1, v := id
--           Join on outer_1 = name
--             Aggregate by k, c
--               Scan t (k, c)
--             Scan u (id, name)

SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u, LATERAL (SELECT MAX(x.v) AS m FROM u x WHERE x.id < u.id) s WHERE u.t_k = t.k AND s.m > 1)
-- columns: k BIGINT NOT NULL
-- key: k
-- Semi join on k = tie_0
--   Scan t (k)
--   Project tie_0 := t_k, __key_0_id := id
--     Join on id <=> outer_0
--       Scan u (id, t_k)
--       Filter (max(v) > 1)
--         Aggregate by outer_0: max(v) := max(argument of max(v))
--           Project outer_0 := outer_0, argument of max(v) := v
--             Join of all pairs where (id < outer_0), seeks outer_0 > id on the left, id < outer_0 on the right
--               Aggregate by id
--                 Scan u (id)
--               Scan u (id, v)
