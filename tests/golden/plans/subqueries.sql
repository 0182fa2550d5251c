SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t_k = t.k AND u.v > 3)
-- columns: k BIGINT NOT NULL
-- key: k
-- Semi join on k = tie_0
--   Scan t (k)
--   Project tie_0 := t_k, __key_0_id := id
--     Filter (v > 3)
--       Scan u (id, t_k, v)

SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.t_k = t.k AND u.v > t.a)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Anti join on k = tie_0 where (tie_1 > a), seeks tie_1 > a on the right
--     Scan t (k, a)
--     Project tie_0 := t_k, tie_1 := v, __key_0_id := id
--       Scan u (id, t_k, v)

SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE v > 8)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Join of all pairs
--     Scan t (k)
--     Filter any
--       Project any := (count_star > 0)
--         Aggregate: count_star := count_star()
--           Project __key_0_id := id
--             Filter (v > 8)
--               Scan u (id, v)

SELECT k FROM t WHERE a IN (SELECT v FROM u)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Semi join on a = v
--     Scan t (k, a)
--     Project v := v, __key_0_id := id
--       Scan u (id, v)

SELECT k FROM t WHERE a NOT IN (SELECT v FROM u WHERE t_k = k)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Filter (not((any <=> True)) OR not((is_null(a) OR (null <=> True))))
--     Left join on k = in_0
--       Anti join on k = tie_0 AND a = v
--         Scan t (k, a)
--         Project v := v, tie_0 := t_k, __key_0_id := id
--           Scan u (id, t_k, v)
--       Project in_0 := in_0, any := (count_star > 0), null := (count_star > 0)
--         Aggregate by in_0: count_star := count_star(), count_star := count_star() filter in_1
--           Project in_0 := t_k, in_1 := is_null(v)
--             Scan u (t_k, v)

SELECT k FROM t WHERE (a, b) NOT IN (SELECT id, v FROM u)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Anti join of all pairs where (coalesce((a = id), True) AND coalesce((b = v), True))
--     Scan t (k, a, b)
--     Scan u (id, v)

SELECT k FROM t WHERE a IN (SELECT v FROM u) OR b = 2
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Filter (is_not_null(found) OR (b = 2))
--     Left join on a = in_0
--       Scan t (k, a, b)
--       Project in_0 := in_0, found := True
--         Aggregate by v
--           Scan u (v)

SELECT k, a NOT IN (SELECT v FROM u WHERE t_k = k) AS m FROM t
-- columns: k BIGINT NOT NULL, m BOOLEAN
-- key: k
-- Project k := k, m := not((is_not_null(found) OR (not(not((any <=> True))) AND (is_null(a) OR (null <=> True)))))
--   Left join on k = in_0
--     Left join on k = in_0 AND a = in_1
--       Scan t (k, a)
--       Project in_0 := in_0, in_1 := in_1, found := True
--         Aggregate by t_k, v
--           Scan u (t_k, v)
--     Project in_0 := in_0, any := (count_star > 0), null := (count_star > 0)
--       Aggregate by in_0: count_star := count_star(), count_star := count_star() filter in_1
--         Project in_0 := t_k, in_1 := is_null(v)
--           Scan u (t_k, v)

SELECT k, a > 1 AND EXISTS (SELECT 1 FROM u WHERE t_k = k AND v > a) AS m FROM t
-- columns: k BIGINT NOT NULL, m BOOLEAN
-- key: k
-- Project k := k, m := ((a > 1) AND found)
--   UnionAll
--     Project k := k, a := a, found := True
--       Semi join on k = tie_0 where (tie_1 > a), seeks tie_1 > a on the right
--         Scan t (k, a)
--         Project tie_0 := t_k, tie_1 := v, __key_0_id := id
--           Scan u (id, t_k, v)
--     Project k := k, a := a, found := False
--       Anti join on k = tie_0 where (tie_1 > a), seeks tie_1 > a on the right
--         Scan t (k, a)
--         Project tie_0 := t_k, tie_1 := v, __key_0_id := id
--           Scan u (id, t_k, v)

SELECT k, a + (SELECT COUNT(*) FROM u WHERE t_k = k) AS m FROM t WHERE a < (SELECT AVG(v) FROM u)
-- columns: k BIGINT NOT NULL, m BIGINT
-- key: k
-- Project k := k, m := (cast(a as bigint) + coalesce(count(*), 0))
--   Left join on k = t_k
--     Project k := k, a := a
--       Join of all pairs where (cast(a as double) < avg(v)), seeks cast(a as double) < avg(v) on the left
--         Scan t (k, a)
--         Aggregate: avg(v) := avg(v)
--           Scan u (v)
--     Aggregate by t_k: count(*) := count_star()
--       Scan u (t_k)

SELECT k, (SELECT MAX(v) FROM u WHERE t_k = k HAVING COUNT(*) > 1) AS m FROM t
-- columns: k BIGINT NOT NULL, m INT
-- key: k
-- Project k := k, m := case((coalesce(count(*), 0) > 1), max(v), NULL)
--   Left join on k = t_k
--     Scan t (k)
--     Aggregate by t_k: max(v) := max(v), count(*) := count_star()
--       Scan u (t_k, v)

SELECT k, (SELECT v FROM u WHERE id = k) AS m FROM t
-- columns: k BIGINT NOT NULL, m INT
-- key: k
-- Project k := k, m := only_row(min, count_star)
--   Left join on k = in_0
--     Scan t (k)
--     Aggregate by in_0: min := min(in_1), count_star := count_star()
--       Project in_0 := cast(id as bigint), in_1 := v
--         Scan u (id, v)

SELECT k, (SELECT SUM(p) FROM (SELECT v * t.a AS p FROM u WHERE t_k = k AND v > t.b) q) AS m FROM t
-- columns: k BIGINT NOT NULL, m BIGINT
-- key: k
-- Project k := k, m := sum(p)
--   Left join on k <=> outer_0 AND b <=> outer_1 AND a <=> outer_2
--     Scan t (k, a, b)
--     Aggregate by outer_0, outer_1, outer_2: sum(p) := sum(argument of sum(p))
--       Project outer_0 := outer_0, outer_1 := outer_1, outer_2 := outer_2, argument of sum(p) := (v * outer_2)
--         Join on outer_0 = t_k where (v > outer_1), seeks outer_1 < v on the left, v > outer_1 on the right
--           Aggregate by outer_0, outer_1, outer_2
--             Project outer_0 := k, outer_1 := b, outer_2 := a
--               Scan t (k, a, b)
--           Scan u (id, t_k, v)

SELECT k FROM t WHERE a > ALL (SELECT v FROM u WHERE t_k = k)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Filter not(case((a <= max), True, ((any <=> True) AND (is_null(a) OR (null <=> True))), NULL, False))
--     Left join on k = in_0
--       Scan t (k, a)
--       Project in_0 := in_0, max := max, any := (count_star > 0), null := (count_star > 0)
--         Aggregate by in_0: max := max(in_1), count_star := count_star(), count_star := count_star() filter in_2
--           Project in_0 := t_k, in_1 := v, in_2 := is_null(v)
--             Scan u (t_k, v)

SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t_k = k AND EXISTS (SELECT 1 FROM t t2 WHERE t2.k = id AND t2.b > t.b))
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Semi join on b <=> tie_0 AND k <=> tie_1
--     Scan t (k, b)
--     Project tie_0 := outer_0, tie_1 := outer_1, __key_0_id := id
--       Semi join on __join_0 = k where (b > outer_0), seeks outer_0 < b on the left
--         Project outer_0 := outer_0, outer_1 := outer_1, id := id, __join_0 := cast(id as bigint)
--           Join on outer_1 = t_k
--             Aggregate by outer_0, outer_1
--               Project outer_0 := b, outer_1 := k
--                 Scan t (k, b)
--             Scan u (id, t_k)
--         Scan t (k, b)

SELECT c, SUM(a) AS s FROM t GROUP BY c HAVING SUM(a) >= (SELECT MIN(v) FROM u WHERE name = c)
-- columns: c STRING, s BIGINT
-- key: c
-- Project c := c, s := sum(a)
--   Filter (sum(a) >= cast(min(v) as bigint))
--     Join on c = name
--       Aggregate by c: sum(a) := sum(argument of sum(a))
--         Project c := c, argument of sum(a) := a
--           Scan t (a, c)
--       Aggregate by name: min(v) := min(argument of min(v))
--         Project name := name, argument of min(v) := v
--           Scan u (v, name)

SELECT k FROM t WHERE a IN (SELECT 1 UNION ALL SELECT v FROM (VALUES (2), (3)) AS q(v))
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Semi join on a = 1
--     Scan t (k, a)
--     UnionAll
--       Project 1 := 1, __branch := 0, __key_0_pos := NULL
--         Aggregate: __none := count_star()
--           Filter False
--             Scan t (k)
--       Project 1 := col1, __branch := 1, __key_0_pos := pos
--         Expand into 2 rows: pos, col1
--           Aggregate: __none := count_star()
--             Filter False
--               Scan t (k)

SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE (v = a AND id > 3) OR (v = a AND b > 1))
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Semi join on a = v where ((id > 3) OR (b > 1))
--     Scan t (k, a, b)
--     Scan u (id, v)

SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE v = a OR id = b)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Semi join on a = v, or else on b = id
--     Scan t (k, a, b)
--     Scan u (id, v)

SELECT k FROM t WHERE a NOT IN (SELECT v FROM u WHERE name = c OR id = b)
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Anti join on c = tie_1 where coalesce((a = v), True), or else on b = tie_0 where coalesce((a = v), True)
--     Scan t (k, a, b, c)
--     Project v := v, tie_0 := id, tie_1 := name
--       Scan u (id, v, name)

SELECT k, (SELECT MAX(v) FROM u WHERE name = c OR id = b) AS m FROM t
-- columns: k BIGINT NOT NULL, m INT
-- key: k
-- Project k := k, m := max(v)
--   Left join on c <=> outer_0 AND b <=> outer_1
--     Scan t (k, b, c)
--     Aggregate by outer_0, outer_1: max(v) := max(argument of max(v))
--       Project outer_0 := outer_0, outer_1 := outer_1, argument of max(v) := v
--         Join on outer_0 = name, or else on outer_1 = id
--           Aggregate by outer_0, outer_1
--             Project outer_0 := c, outer_1 := b
--               Scan t (b, c)
--           Scan u (id, v, name)
