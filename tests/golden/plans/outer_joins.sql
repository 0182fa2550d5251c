SELECT t.k, u.v FROM t LEFT JOIN u ON u.t_k = t.k
-- columns: k BIGINT NOT NULL, v INT
-- hidden: __key_0_id INT
-- key: k, __key_0_id
-- Project k := k, v := v, __key_0_id := id
--   Left join on k = t_k
--     Scan t (k)
--     Scan u (id, t_k, v)

SELECT t.k, u.id FROM t LEFT JOIN u ON u.t_k = t.k AND u.v > 3 AND t.a > 1
-- columns: k BIGINT NOT NULL, id INT
-- key: k, id
-- Project k := k, id := id
--   Left join on k = t_k where (a > 1)
--     Scan t (k, a)
--     Filter (v > 3)
--       Scan u (id, t_k, v)

SELECT u.id, t.c FROM u LEFT JOIN t ON u.t_k = t.k
-- columns: id INT NOT NULL, c STRING
-- key: id
-- Project id := id, c := c
--   Left join on t_k = k
--     Scan u (id, t_k)
--     Scan t (k, c)

SELECT t.c, u.id FROM t RIGHT JOIN u ON u.t_k = t.k AND t.a > 1 AND u.v > 3
-- columns: c STRING, id INT NOT NULL
-- key: id
-- Project c := c, id := id
--   Right join on k = t_k where (v > 3)
--     Filter (a > 1)
--       Scan t (k, a, c)
--     Scan u (id, t_k, v)

SELECT t.k, u.id FROM t FULL JOIN u ON u.t_k = t.k AND u.v > t.a
-- columns: k BIGINT, id INT
-- key: k, id
-- Project k := k, id := id
--   Full join on k = t_k where (v > a), seeks v > a on the right
--     Scan t (k, a)
--     Scan u (id, t_k, v)

SELECT k, c FROM t LEFT SEMI JOIN u ON u.t_k = t.k
-- columns: k BIGINT NOT NULL, c STRING
-- key: k
-- Semi join on k = t_k
--   Scan t (k, c)
--   Scan u (id, t_k)

SELECT k, c FROM t LEFT ANTI JOIN u ON u.t_k = t.k AND u.v > t.a
-- columns: k BIGINT NOT NULL, c STRING
-- key: k
-- Project k := k, c := c
--   Anti join on k = t_k where (v > a), seeks v > a on the right
--     Scan t (k, a, c)
--     Scan u (id, t_k, v)

SELECT t.k, u.id FROM t CROSS JOIN u
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Join of all pairs
--   Scan t (k)
--   Scan u (id)

SELECT t.k, u.id FROM t JOIN u ON u.v BETWEEN t.a AND t.b OR t.c = u.name
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join of all pairs where ((v >= a) AND (v <= b)), seeks a <= v on the left, v >= a AND v <= b on the right, or else on c = name
--     Scan t (k, a, b, c)
--     Scan u (id, v, name)

SELECT t.k, u.id FROM t JOIN u ON u.v <=> t.a
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join on a <=> v
--     Scan t (k, a)
--     Scan u (id, v)

SELECT x.k, u.id, y.k AS k2 FROM t AS x, u LEFT JOIN t AS y ON y.k = u.v WHERE x.k = u.t_k
-- columns: k BIGINT NOT NULL, id INT NOT NULL, k2 BIGINT
-- key: k, id
-- Project k := k, id := id, k2 := k
--   Left join on __join_0 = k
--     Project k := k, id := id, __join_0 := cast(v as bigint)
--       Join on k = t_k
--         Scan t (k)
--         Scan u (id, t_k, v)
--     Scan t (k)

SELECT t.k, u.id FROM t LEFT JOIN u ON u.t_k = t.k WHERE u.v > 2
-- columns: k BIGINT NOT NULL, id INT
-- key: k, id
-- Project k := k, id := id
--   Join on k = t_k
--     Scan t (k)
--     Filter (v > 2)
--       Scan u (id, t_k, v)

SELECT t.k, u.id FROM t LEFT JOIN u ON u.t_k = t.k WHERE u.v IS NULL
-- columns: k BIGINT NOT NULL, id INT
-- key: k, id
-- Project k := k, id := id
--   Filter is_null(v)
--     Left join on k = t_k
--       Scan t (k)
--       Scan u (id, t_k, v)

SELECT x.k, u.id, z.k AS k3 FROM t AS x LEFT JOIN u ON u.t_k = x.k LEFT JOIN t AS z ON z.k = u.v
-- columns: k BIGINT NOT NULL, id INT, k3 BIGINT
-- key: k, id
-- Project k := k, id := id, k3 := k
--   Left join on __join_0 = k
--     Project k := k, id := id, __join_0 := cast(v as bigint)
--       Left join on k = t_k
--         Scan t (k)
--         Scan u (id, t_k, v)
--     Scan t (k)

SELECT k, a, v FROM (SELECT a, k FROM t) AS p FULL JOIN (SELECT t_k AS k, v FROM u) AS q USING (k)
-- columns: k BIGINT, a INT, v INT
-- hidden: __key_0_k BIGINT, __key_1_id INT
-- key: __key_0_k, __key_1_id
-- Project k := coalesce(k, k), a := a, v := v, __key_0_k := k, __key_1_id := __key_0_id
--   Full join on k = k
--     Project a := a, k := k
--       Scan t (k, a)
--     Project k := t_k, v := v, __key_0_id := id
--       Scan u (id, t_k, v)

SELECT k, a, v FROM (SELECT a, k FROM t) AS p NATURAL RIGHT JOIN (SELECT t_k AS k, v FROM u) AS q
-- columns: k BIGINT, a INT, v INT
-- hidden: __key_0_id INT NOT NULL
-- key: __key_0_id
-- Project k := k, a := a, v := v, __key_0_id := __key_0_id
--   Right join on k = k
--     Project a := a, k := k
--       Scan t (k, a)
--     Project k := t_k, v := v, __key_0_id := id
--       Scan u (id, t_k, v)

SELECT x.a, y.v FROM (SELECT SUM(a) AS a FROM t) AS x FULL JOIN (SELECT SUM(v) AS v FROM u) AS y ON x.a = y.v
-- columns: a BIGINT, v BIGINT
-- hidden: __key_0_in_left BOOLEAN
-- key: __key_0_in_left
-- Project a := a, v := v, __key_0_in_left := __key_0_in_left
--   Full join on a = v
--     Project a := a, __key_0_in_left := True
--       Aggregate: a := sum(a)
--         Scan t (a)
--     Aggregate: v := sum(v)
--       Scan u (v)

SELECT t.k FROM t FULL JOIN u ON u.t_k = t.k JOIN t AS z ON z.k = t.k
-- columns: k BIGINT
-- hidden: __key_0_id INT
-- key: k, __key_0_id
-- Project k := k, __key_0_id := id
--   Join on k = k
--     Full join on k = t_k
--       Scan t (k)
--       Scan u (id, t_k)
--     Scan t (k)

SELECT t.k, u.id FROM t JOIN u ON t.a = u.v OR t.b = u.id
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join on a = v, or else on b = id
--     Scan t (k, a, b)
--     Scan u (id, v)

SELECT t.k, u.id FROM t, u WHERE (t.a = u.v OR t.b = u.id) AND t.c = 'x'
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join on a = v, or else on b = id
--     Filter (c = 'x')
--       Scan t (k, a, b, c)
--     Scan u (id, v)

SELECT t.k, u.id FROM t LEFT JOIN u ON (t.a = u.v AND u.name = 'one') OR COALESCE(t.b, 0) = u.id
-- columns: k BIGINT NOT NULL, id INT
-- key: k, id
-- Project k := k, id := id
--   Left join on a = v where (name = 'one'), or else on coalesce(b, 0) = id
--     Scan t (k, a, b)
--     Scan u (id, v, name)

SELECT t.k, u.id FROM t FULL JOIN u ON (t.a = u.v AND t.b > 1 AND u.id < 5) OR t.k <=> u.t_k AND t.b < u.id
-- columns: k BIGINT, id INT
-- key: k, id
-- Project k := k, id := id
--   Full join on a = v where ((b > 1) AND (id < 5)), or else on k <=> t_k where (b < id), seeks id > b on the right
--     Scan t (k, a, b)
--     Scan u (id, t_k, v)

SELECT t.k, u.id FROM t JOIN u ON t.a IN (u.v, u.id)
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join on a = v, or else on a = id
--     Scan t (k, a)
--     Scan u (id, v)

SELECT t.k FROM t LEFT SEMI JOIN u ON t.a = u.v OR t.b = u.id OR t.c = u.name
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Semi join on a = v, or else on b = id, or else on c = name
--     Scan t (k, a, b, c)
--     Scan u (id, v, name)

SELECT t.k FROM t LEFT ANTI JOIN u ON (t.a = u.v AND t.b < u.id) OR t.c = u.name
-- columns: k BIGINT NOT NULL
-- key: k
-- Project k := k
--   Anti join on a = v where (b < id), seeks b < id on the left, id > b on the right, or else on c = name
--     Scan t (k, a, b, c)
--     Scan u (id, v, name)

SELECT t.k, u.id FROM t JOIN u ON t.a = u.v OR 4 / t.b > u.id
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join of all pairs where ((a = v) OR ((4.0 / cast(b as double)) > cast(id as double)))
--     Scan t (k, a, b)
--     Scan u (id, v)

SELECT t.k, u.id FROM t JOIN u ON t.a = u.v OR t.b = u.id OR t.c = u.name OR t.k = u.t_k OR t.k = u.v
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join of all pairs where ((((a = v) OR (b = id)) OR (c = name)) OR ((k = t_k) OR (k = cast(v as bigint))))
--     Scan t (k, a, b, c)
--     Scan u (id, t_k, v, name)

SELECT t.k, u.id FROM t JOIN u ON t.a < u.v AND (t.b = u.id OR t.c = u.name)
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join on b = id where (a < v), seeks a < v on the left, or else on c = name where (a < v), seeks a < v on the left, v > a on the right
--     Scan t (k, a, b, c)
--     Scan u (id, v, name)

SELECT t.k, u.id FROM t JOIN u ON t.a < u.v AND (t.b < u.id OR t.c = u.name)
-- columns: k BIGINT NOT NULL, id INT NOT NULL
-- key: k, id
-- Project k := k, id := id
--   Join of all pairs where ((a < v) AND ((b < id) OR (c = name))), seeks a < v on the left, v > a on the right
--     Scan t (k, a, b, c)
--     Scan u (id, v, name)
