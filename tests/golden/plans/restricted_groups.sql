SELECT u.id, t.k FROM u JOIN t ON t_k = k WHERE c = 'one' AND v > (SELECT AVG(v) FROM u AS w WHERE w.t_k = t.k)
-- columns: id INT NOT NULL, k BIGINT NOT NULL
-- key: id, k
-- Project id := id, k := k
--   Join on k = t_k where (cast(v as double) > avg(v)), seeks cast(v as double) > avg(v) on the left
--     Join on t_k = k
--       Scan u (id, t_k, v)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Aggregate by t_k: avg(v) := avg(argument of avg(v))
--       Project t_k := t_k, argument of avg(v) := v
--         Semi join on t_k = k
--           Scan u (id, t_k, v)
--           Filter (c = 'one')
--             Scan t (k, c)

SELECT u.id FROM u JOIN t ON t_k = k WHERE c = 'one' AND v > (SELECT AVG(v) FROM u AS w WHERE w.t_k = u.t_k)
-- columns: id INT NOT NULL
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, __key_0_k := k
--   Join on t_k = t_k where (cast(v as double) > avg(v)), seeks cast(v as double) > avg(v) on the left
--     Join on t_k = k
--       Scan u (id, t_k, v)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Aggregate by t_k: avg(v) := avg(argument of avg(v))
--       Project t_k := t_k, argument of avg(v) := v
--         Semi join on t_k = k
--           Scan u (id, t_k, v)
--           Filter (c = 'one')
--             Scan t (k, c)

SELECT u.id FROM u JOIN t ON t_k = k WHERE v > (SELECT AVG(v) FROM u AS w WHERE w.t_k = t.k)
-- columns: id INT NOT NULL
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, __key_0_k := k
--   Join on k = t_k where (cast(v as double) > avg(v)), seeks cast(v as double) > avg(v) on the left
--     Join on t_k = k
--       Scan u (id, t_k, v)
--       Scan t (k)
--     Aggregate by t_k: avg(v) := avg(v)
--       Scan u (t_k, v)

SELECT u.id FROM u JOIN t ON t_k = k WHERE c = 'one' AND v > (SELECT AVG(v) FROM u AS w WHERE w.t_k = t.k AND w.id > 1)
-- columns: id INT NOT NULL
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, __key_0_k := k
--   Join on k = t_k where (cast(v as double) > avg(v)), seeks cast(v as double) > avg(v) on the left
--     Join on t_k = k
--       Scan u (id, t_k, v)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Aggregate by t_k: avg(v) := avg(argument of avg(v))
--       Project t_k := t_k, argument of avg(v) := v
--         Filter (id > 1)
--           Scan u (id, t_k, v)

SELECT u.id FROM u JOIN t ON t_k = k WHERE c = 'one' AND u.id > 1 AND v >= (SELECT AVG(v) FROM u AS w WHERE w.t_k = t.k AND w.id > 1)
-- columns: id INT NOT NULL
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, __key_0_k := k
--   Join on k = t_k where (cast(v as double) >= avg(v)), seeks cast(v as double) >= avg(v) on the left
--     Join on t_k = k
--       Filter (id > 1)
--         Scan u (id, t_k, v)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Aggregate by t_k: avg(v) := avg(argument of avg(v))
--       Project t_k := t_k, argument of avg(v) := v
--         Semi join on t_k = k
--           Filter (id > 1)
--             Scan u (id, t_k, v)
--           Filter (c = 'one')
--             Scan t (k, c)

SELECT u.id, q.n FROM u JOIN t ON u.t_k = t.k AND c = 'one' LEFT JOIN (SELECT t_k, COUNT(*) AS n FROM u GROUP BY t_k) q ON q.t_k = u.t_k
-- columns: id INT NOT NULL, n BIGINT
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, n := n, __key_0_k := k
--   Left join on t_k = t_k
--     Join on t_k = k
--       Scan u (id, t_k)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Aggregate by t_k: n := count_star()
--       Project t_k := t_k
--         Semi join on t_k = k
--           Scan u (id, t_k)
--           Filter (c = 'one')
--             Scan t (k, c)

SELECT q.n, u.name FROM (SELECT t_k, COUNT(*) AS n FROM u GROUP BY t_k HAVING COUNT(*) > 1) q JOIN u ON q.t_k = u.t_k JOIN t ON u.t_k = t.k WHERE a = 1
-- columns: n BIGINT NOT NULL, name STRING
-- hidden: __key_0_t_k BIGINT, __key_1_id INT NOT NULL
-- key: __key_0_t_k, __key_1_id
-- Project n := n, name := name, __key_0_t_k := t_k, __key_1_id := id
--   Join on t_k = k
--     Join on t_k = t_k
--       Scan u (id, t_k, name)
--       Filter (count(*) > 1)
--         Aggregate by t_k: count(*) := count_star()
--           Scan u (t_k)
--     Filter (a = 1)
--       Scan t (k, a)

SELECT u.id FROM u JOIN t ON t_k = k LEFT JOIN t AS z ON z.k = u.v WHERE t.a > 0 AND u.v < (SELECT MAX(GREATEST(w.v, y.b)) FROM u AS w JOIN t AS y ON w.v = y.a WHERE w.t_k = t.k)
-- columns: id INT NOT NULL
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, __key_0_k := k
--   Join on k = t_k where (v < max(greatest(v, b))), seeks v < max(greatest(v, b)) on the left
--     Left join on __join_0 = k
--       Project id := id, v := v, k := k, __join_0 := cast(v as bigint)
--         Join on t_k = k
--           Scan u (id, t_k, v)
--           Filter (a > 0)
--             Scan t (k, a)
--       Scan t (k)
--     Aggregate by t_k: max(greatest(v, b)) := max(argument of max(greatest(v, b)))
--       Project t_k := t_k, argument of max(greatest(v, b)) := greatest(v, b)
--         Join on v = a
--           Semi join on t_k = k
--             Scan u (id, t_k, v)
--             Filter (a > 0)
--               Scan t (k, a)
--           Scan t (k, a, b)

SELECT u.id FROM u JOIN t ON t_k = k AND v = b WHERE c = 'one' AND u.id >= (SELECT MIN(id) FROM u AS w WHERE w.t_k = t.k)
-- columns: id INT NOT NULL
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, __key_0_k := k
--   Join on k = t_k where (id >= min(id)), seeks id >= min(id) on the left
--     Join on t_k = k AND v = b
--       Scan u (id, t_k, v)
--       Filter (c = 'one')
--         Scan t (k, b, c)
--     Aggregate by t_k: min(id) := min(argument of min(id))
--       Project t_k := t_k, argument of min(id) := id
--         Scan u (id, t_k)

WITH q AS (SELECT 5 AS c, 1 AS d FROM t WHERE x IS NULL) SELECT q.c, (SELECT COUNT(*) FROM q AS s WHERE s.c = q.c) AS n FROM q JOIN q AS r ON q.c = r.c WHERE q.c IN (SELECT c FROM q)
-- columns: c INT NOT NULL, n BIGINT
-- hidden: __key_0_k BIGINT NOT NULL, __key_1_k BIGINT NOT NULL
-- key: __key_0_k, __key_1_k
-- Project c := c, n := coalesce(count(*), 0), __key_0_k := __key_0_k, __key_1_k := __key_0_k
--   Left join on c = c
--     Join on c = c
--       Semi join on c = c
--         Project c := 5, __key_0_k := k
--           Filter is_null(x)
--             Scan t (k, x)
--         Project c := 5, __key_0_k := k
--           Filter is_null(x)
--             Scan t (k, x)
--       Project c := 5, __key_0_k := k
--         Filter is_null(x)
--           Scan t (k, x)
--     Aggregate by c: count(*) := count_star()
--       Project c := 5
--         Filter is_null(x)
--           Scan t (k, x)

SELECT u.id, s.n FROM u JOIN t ON t_k = k AND c = 'one' LEFT JOIN (SELECT t_k, COUNT(*) AS n FROM u GROUP BY t_k HAVING 10 / SUM(v) > 1) AS s ON s.t_k = u.t_k
-- columns: id INT NOT NULL, n BIGINT
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, n := n, __key_0_k := k
--   Left join on t_k = t_k
--     Join on t_k = k
--       Scan u (id, t_k)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Project t_k := t_k, n := count(*)
--       Filter ((10.0 / cast(sum(v) as double)) > 1.0)
--         Aggregate by t_k: count(*) := count_star(), sum(v) := sum(v)
--           Scan u (t_k, v)

SELECT u.id, s.n FROM u JOIN t ON t_k = k AND c = 'one' LEFT JOIN (SELECT w.t_k, COUNT(*) AS n FROM u AS w JOIN t AS o ON w.v = o.a AND 10 / w.id > o.b GROUP BY w.t_k) AS s ON s.t_k = u.t_k
-- columns: id INT NOT NULL, n BIGINT
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, n := n, __key_0_k := k
--   Left join on t_k = t_k
--     Join on t_k = k
--       Scan u (id, t_k)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Aggregate by t_k: n := count_star()
--       Project t_k := t_k
--         Join on v = a where ((10.0 / cast(id as double)) > cast(b as double)), seeks (10.0 / cast(id as double)) > cast(b as double) on the left, cast(b as double) < (10.0 / cast(id as double)) on the right
--           Scan u (id, t_k, v)
--           Scan t (k, a, b)

SELECT u.id, s.n FROM u JOIN (SELECT k, k + 1 AS part FROM t WHERE c = 'one') AS f ON t_k = f.part LEFT JOIN (SELECT t_k, COUNT(*) AS n FROM u GROUP BY t_k) AS s ON s.t_k = u.t_k
-- columns: id INT NOT NULL, n BIGINT
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, n := n, __key_0_k := k
--   Left join on t_k = t_k
--     Join on t_k = part
--       Scan u (id, t_k)
--       Project k := k, part := (k + 1)
--         Filter (c = 'one')
--           Scan t (k, c)
--     Aggregate by t_k: n := count_star()
--       Scan u (t_k)

WITH RECURSIVE r(k, n) AS (SELECT a, 0 FROM t UNION SELECT u.v, n + 1 FROM r JOIN u ON u.id = r.k JOIN (SELECT id, COUNT(v) AS m FROM u GROUP BY id) AS s ON s.id = u.id WHERE n < 3 AND m > 0) SELECT k, n FROM r
-- columns: k INT, n INT
-- key: k, n
-- Recursion
--   Project k := a, n := 0
--     Scan t (a)
--   Project k := v, n := (n + 1)
--     Join on id = id
--       Join on k = id
--         Filter (n < 3)
--           RecursiveScan
--         Scan u (id, v)
--       Filter (m > 0)
--         Aggregate by id: m := count(v)
--           Scan u (id, v)

SELECT u.id, s.n FROM u JOIN t ON t_k = k AND c = 'one' LEFT JOIN (SELECT t_k, MAX(10 / v) AS n FROM u GROUP BY t_k) AS s ON s.t_k = u.t_k
-- columns: id INT NOT NULL, n DOUBLE
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, n := n, __key_0_k := k
--   Left join on t_k = t_k
--     Join on t_k = k
--       Scan u (id, t_k)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Aggregate by t_k: n := max(argument of max((10 / v)))
--       Project t_k := t_k, argument of max((10 / v)) := (10.0 / cast(v as double))
--         Scan u (t_k, v)

SELECT u.id, s.n FROM u JOIN t ON t_k = k AND c = 'one' LEFT JOIN (SELECT t_k, 10 / MAX(id) AS n FROM u GROUP BY t_k) AS s ON s.t_k = u.t_k
-- columns: id INT NOT NULL, n DOUBLE
-- hidden: __key_0_k BIGINT NOT NULL
-- key: id, __key_0_k
-- Project id := id, n := n, __key_0_k := k
--   Left join on t_k = t_k
--     Join on t_k = k
--       Scan u (id, t_k)
--       Filter (c = 'one')
--         Scan t (k, c)
--     Project t_k := t_k, n := (10.0 / cast(max(id) as double))
--       Aggregate by t_k: max(id) := max(argument of max(id))
--         Project t_k := t_k, argument of max(id) := id
--           Scan u (id, t_k)
