SELECT t.k, u.v FROM t JOIN u ON u.t_k = t.k WHERE u.v > 3
-- columns: k BIGINT NOT NULL, v INT
-- hidden: __key_0_id INT NOT NULL
-- key: k, __key_0_id
-- Project k := k, v := v, __key_0_id := id
--   Join on k = t_k
--     Scan t (k)
--     Filter (v > 3)
--       Scan u (id, t_k, v)

SELECT t.k, u.id, u.v FROM t, u WHERE t.a = u.v AND t.b < u.id
-- columns: k BIGINT NOT NULL, id INT NOT NULL, v INT
-- key: k, id
-- Project k := k, id := id, v := v
--   Join on a = v where (b < id), seeks b < id on the left, id > b on the right
--     Scan t (k, a, b)
--     Scan u (id, v)

SELECT r1.k, r2.k AS k2, r3.k AS k3 FROM t AS r1 JOIN t AS r2 ON r1.b = r2.a JOIN t AS r3 ON r3.b = r1.a AND r2.b = r3.a
-- columns: k BIGINT NOT NULL, k2 BIGINT NOT NULL, k3 BIGINT NOT NULL
-- key: k, k2, k3
-- Project k := k, k2 := k, k3 := k
--   Join on a = b AND b = a
--     Join on b = a
--       Scan t (k, a, b)
--       Scan t (k, a, b)
--     Scan t (k, a, b)

SELECT r1.k, r2.k AS k2, r3.k AS k3 FROM t AS r1, t AS r3, t AS r2 WHERE r1.b = r2.a AND r2.b = r3.a AND r3.c = 'one'
-- columns: k BIGINT NOT NULL, k2 BIGINT NOT NULL, k3 BIGINT NOT NULL
-- key: k, k3, k2
-- Project k := k, k2 := k, k3 := k
--   Join on b = a
--     Join on b = a
--       Scan t (k, b)
--       Scan t (k, a, b)
--     Filter (c = 'one')
--       Scan t (k, a, c)

SELECT t.k, u.id FROM t JOIN u ON LOWER(t.c) = LOWER(u.name)
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join on __join_0 = __join_0
--     Project k := k, __join_0 := lower(c)
--       Scan t (k, c)
--     Project id := id, __join_0 := lower(name)
--       Scan u (id, name)

SELECT t.k, q.n FROM t JOIN (SELECT t_k, COUNT(*) AS n FROM u GROUP BY t_k) AS q ON q.t_k = t.k
-- columns: k BIGINT NOT NULL, n BIGINT NOT NULL
-- key: k
-- Project k := k, n := n
--   Join on k = t_k
--     Scan t (k)
--     Aggregate by t_k: n := count_star()
--       Scan u (t_k)

SELECT * FROM (SELECT k, a FROM t) AS p JOIN (SELECT t_k AS k, v FROM u) AS q USING (k)
-- columns: k BIGINT NOT NULL, a INT, v INT
-- hidden: __key_0_id INT NOT NULL
-- key: k, __key_0_id
-- Project k := k, a := a, v := v, __key_0_id := __key_0_id
--   Join on k = k
--     Scan t (k, a)
--     Project k := t_k, v := v, __key_0_id := id
--       Scan u (id, t_k, v)

SELECT p.m AS m1, q.m AS m2 FROM (SELECT MAX(a) AS m FROM t) AS p JOIN (SELECT MAX(a) AS m FROM t) AS q ON p.m = q.m
-- columns: m1 INT, m2 INT
-- key: none: one row
-- Join on m = m
--   Aggregate: m := max(a)
--     Scan t (a)
--   Aggregate: m := max(a)
--     Scan t (a)

SELECT u.name, SUM(t.a) AS s FROM t JOIN u ON u.t_k = t.k GROUP BY u.name
-- columns: name STRING, s BIGINT
-- key: name
-- Aggregate by name: s := sum(argument of sum(a))
--   Project name := name, argument of sum(a) := a
--     Join on k = t_k
--       Scan t (k, a)
--       Scan u (id, t_k, name)
