SELECT k, u.name, w.v FROM u JOIN t ON k = u.t_k LEFT JOIN u AS w ON w.t_k = k AND w.id <> b
-- columns: k BIGINT NOT NULL, name STRING, v INT
-- hidden: __key_0_id INT NOT NULL, __key_1_id INT
-- key: __key_0_id, k, __key_1_id
-- Project k := k, name := name, v := v, __key_0_id := id, __key_1_id := id
--   Left join on k = t_k where (id <> b)
--     Project id := id, t_k := t_k, name := name, k := k, b := b
--       Join on t_k = k
--         Scan u (id, t_k, v, name)
--         Scan t (k, b)
--     Scan u (id, t_k, v, name)

SELECT u.name, w.v, a FROM t RIGHT JOIN u ON u.t_k = k FULL JOIN u AS w ON w.t_k = k
-- columns: name STRING, v INT, a INT
-- hidden: __key_0_id INT, __key_1_id INT
-- key: __key_0_id, __key_1_id
-- Project name := name, v := v, a := a, __key_0_id := id, __key_1_id := id
--   Full join on k = t_k
--     Project k := k, a := a, id := id, t_k := t_k, name := name
--       Right join on k = t_k
--         Scan t (k, a)
--         Scan u (id, t_k, v, name)
--     Scan u (id, t_k, v, name)

SELECT u.name FROM u LEFT JOIN t ON k = u.t_k WHERE EXISTS (SELECT 1 FROM u AS w WHERE w.t_k = u.t_k AND w.v <> u.id)
-- columns: name STRING
-- hidden: __key_0_id INT NOT NULL
-- key: __key_0_id
-- Project name := name, __key_0_id := id
--   Semi join on t_k = t_k where (v <> id)
--     Project id := id, t_k := t_k, name := name, k := k
--       Left join on t_k = k
--         Scan u (id, t_k, v, name)
--         Scan t (k)
--     Scan u (id, t_k, v, name)

SELECT b FROM t WHERE a IN (SELECT id FROM u JOIN t AS z ON z.a = u.id WHERE z.x > 1) AND NOT EXISTS (SELECT 1 FROM u WHERE id = t.a AND name = c)
-- columns: b INT
-- hidden: __key_0_k BIGINT NOT NULL
-- key: __key_0_k
-- Project b := b, __key_0_k := k
--   Anti join on a = id AND c = name
--     Semi join on a = id
--       Scan t (k, a, b, c)
--       Project id := id, __key_0_k := k
--         Join on id = a
--           Scan u (id)
--           Filter (x > 1.0)
--             Scan t (k, a, x)
--     Scan u (id, name)

SELECT u.name, w.v FROM u JOIN t ON k = u.t_k JOIN u AS w ON w.t_k = a WHERE u.id > 1 AND w.id > 1
-- columns: name STRING, v INT
-- hidden: __key_0_id INT NOT NULL, __key_1_k BIGINT NOT NULL, __key_2_id INT NOT NULL
-- key: __key_0_id, __key_1_k, __key_2_id
-- Project name := name, v := v, __key_0_id := id, __key_1_k := k, __key_2_id := id
--   Join on __join_0 = t_k
--     Project id := id, name := name, k := k, __join_0 := cast(a as bigint)
--       Join on t_k = k
--         Filter (id > 1)
--           Scan u (id, t_k, v, name)
--         Scan t (k, a)
--     Filter (id > 1)
--       Scan u (id, t_k, v, name)

SELECT u.name, w.v FROM u JOIN t ON k = u.t_k JOIN u AS w ON w.t_k = a WHERE u.id > 1 AND w.id > 2
-- columns: name STRING, v INT
-- hidden: __key_0_id INT NOT NULL, __key_1_k BIGINT NOT NULL, __key_2_id INT NOT NULL
-- key: __key_0_id, __key_1_k, __key_2_id
-- Project name := name, v := v, __key_0_id := id, __key_1_k := k, __key_2_id := id
--   Join on __join_0 = t_k
--     Project id := id, name := name, k := k, __join_0 := cast(a as bigint)
--       Join on t_k = k
--         Filter (id > 1)
--           Scan u (id, t_k, name)
--         Scan t (k, a)
--     Filter (id > 2)
--       Scan u (id, t_k, v)

SELECT w.name, q.k2 FROM u AS w JOIN t ON w.t_k = t.k JOIN (SELECT t_k AS k2, id AS i2, v AS v2 FROM u) q ON q.k2 = a WHERE v2 <> w.id
-- columns: name STRING, k2 BIGINT
-- hidden: __key_0_id INT NOT NULL, __key_1_k BIGINT NOT NULL, __key_2_i2 INT NOT NULL
-- key: __key_0_id, __key_1_k, __key_2_i2
-- Project name := name, k2 := k2, __key_0_id := id, __key_1_k := k, __key_2_i2 := i2
--   Filter (v2 <> id)
--     Project id := id, name := name, k := k, __join_0 := __join_0, k2 := k2, i2 := i2, v2 := v2
--       Join on __join_0 = t_k
--         Project id := id, name := name, k := k, __join_0 := cast(a as bigint)
--           Join on t_k = k
--             Scan u (id, t_k, v, name)
--             Scan t (k, a)
--         Scan u (id, t_k, v, name)
