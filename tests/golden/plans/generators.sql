SELECT k, tag FROM t LATERAL VIEW explode(tags) e AS tag
-- columns: k BIGINT NOT NULL, tag STRING
-- hidden: __key_0_pos INT NOT NULL
-- key: k, __key_0_pos
-- Project k := k, tag := col, __key_0_pos := pos
--   Generate pos, col := tags
--     Scan t (k, tags)

SELECT k, tag FROM t LATERAL VIEW OUTER explode(tags) e AS tag WHERE a < 4
-- columns: k BIGINT NOT NULL, tag STRING
-- hidden: __key_0_pos INT
-- key: k, __key_0_pos
-- Project k := k, tag := col, __key_0_pos := pos
--   Generate outer pos, col := tags
--     Filter (a < 4)
--       Scan t (k, a, tags)

SELECT k, p + 1 AS q, tag FROM t LATERAL VIEW posexplode(tags) e AS p, tag WHERE tag <> 'q' OR p = 1
-- columns: k BIGINT NOT NULL, q INT NOT NULL, tag STRING
-- hidden: __key_0_pos INT NOT NULL
-- key: k, __key_0_pos
-- Project k := k, q := (pos + 1), tag := col, __key_0_pos := pos
--   Filter ((col <> 'q') OR (pos = 1))
--     Generate pos, col := tags
--       Scan t (k, tags)

SELECT t.k, e.tag FROM t, LATERAL UNNEST(t.tags) AS e(tag)
-- columns: k BIGINT NOT NULL, tag STRING
-- hidden: __key_0_pos INT NOT NULL
-- key: k, __key_0_pos
-- Project k := k, tag := col, __key_0_pos := pos
--   Generate pos, col := tags
--     Scan t (k, tags)

SELECT tag, COUNT(*) AS n, SUM(a) AS s FROM t LATERAL VIEW explode(tags) e AS tag GROUP BY tag
-- columns: tag STRING, n BIGINT NOT NULL, s BIGINT
-- key: tag
-- Aggregate by col: n := count_star(), s := sum(argument of sum(a))
--   Project col := col, argument of sum(a) := a
--     Generate pos, col := tags
--       Scan t (a, tags)

SELECT k, explode(sequence(a, b)) AS n FROM t
-- columns: k BIGINT NOT NULL, n INT NOT NULL
-- hidden: __key_0_pos INT NOT NULL
-- key: k, __key_0_pos
-- Project k := k, n := col, __key_0_pos := pos
--   Generate pos, col := sequence(a, b)
--     Scan t (k, a, b)

SELECT k, r.id FROM t, range(1, 6, 2) AS r WHERE r.id > a
-- columns: k BIGINT NOT NULL, id BIGINT NOT NULL
-- hidden: __key_0_pos INT NOT NULL
-- key: k, __key_0_pos
-- Project k := k, id := id, __key_0_pos := pos
--   Filter (id > cast(a as bigint))
--     Generate pos, id := sequence(1, 5, 2)
--       Scan t (k, a)

SELECT t.k, v.name FROM t JOIN (VALUES (1, 'first'), (2, 'second'), (2, NULL)) AS v(id, name) ON v.id = t.a
-- columns: k BIGINT NOT NULL, name STRING
-- hidden: __key_0_pos INT NOT NULL
-- key: k, __key_0_pos
-- Project k := k, name := col2, __key_0_pos := pos
--   Filter (col1 = a)
--     Expand into 3 rows: k, a, pos, col1, col2
--       Scan t (k, a)

SELECT v.id, t.k, u.v FROM (VALUES (1), (3)) AS v(id) JOIN t ON v.id = t.a JOIN u ON u.t_k = t.k AND u.v > v.id
-- columns: id INT NOT NULL, k BIGINT NOT NULL, v INT
-- hidden: __key_0_pos INT NOT NULL, __key_1_id INT NOT NULL
-- key: k, __key_0_pos, __key_1_id
-- Project id := col1, k := k, v := v, __key_0_pos := pos, __key_1_id := id
--   Join on k = t_k where (v > col1), seeks col1 < v on the left, v > col1 on the right
--     Filter (col1 = a)
--       Expand into 2 rows: k, a, pos, col1
--         Scan t (k, a)
--     Scan u (id, t_k, v)

SELECT * FROM (SELECT k, a, b FROM t) UNPIVOT (v FOR n IN (a, b))
-- columns: k BIGINT NOT NULL, n STRING NOT NULL, v INT
-- hidden: __key_0_pos INT NOT NULL
-- key: k, __key_0_pos
-- Project k := k, n := n, v := v, __key_0_pos := pos
--   Filter not(is_null(v))
--     Expand into 2 rows: k, pos, n, v
--       Scan t (k, a, b)

SELECT * FROM (SELECT k, a, x FROM t) UNPIVOT INCLUDE NULLS (v FOR n IN (a, x))
-- columns: k BIGINT NOT NULL, n STRING NOT NULL, v DOUBLE
-- hidden: __key_0_pos INT NOT NULL
-- key: k, __key_0_pos
-- Project k := k, n := n, v := v, __key_0_pos := pos
--   Expand into 2 rows: k, pos, n, v
--     Project k := k, x := x, __row_0 := cast(a as double)
--       Scan t (k, a, x)

SELECT * FROM (SELECT a, b, c FROM t) PIVOT (SUM(b) FOR c IN ('one', 'two'))
-- columns: a INT, one BIGINT, two BIGINT
-- key: a
-- Project a := a, one := case((rows > 0), sum(b), NULL), two := case((rows > 0), sum(b), NULL)
--   Aggregate by a: sum(b) := sum(argument of sum(b) where (c <=> CAST(one AS STRING))) filter filter of sum(b) where (c <=> CAST(one AS STRING)), sum(b) := sum(argument of sum(b) where (c <=> CAST(one AS STRING))) filter filter of sum(b) where (c <=> CAST(two AS STRING)), rows := count_star() filter filter of sum(b) where (c <=> CAST(one AS STRING)), rows := count_star() filter filter of sum(b) where (c <=> CAST(two AS STRING))
--     Project a := a, argument of sum(b) where (c <=> CAST(one AS STRING)) := b, filter of sum(b) where (c <=> CAST(one AS STRING)) := (c <=> 'one'), filter of sum(b) where (c <=> CAST(two AS STRING)) := (c <=> 'two')
--       Scan t (a, b, c)

SELECT * FROM (SELECT b, c, x FROM t) PIVOT (SUM(x) AS s, MAX(c) AS m FOR b IN (2, 3 AS three))
-- columns: 2_s DOUBLE, 2_m STRING, three_s DOUBLE, three_m STRING
-- key: none: one row
-- Aggregate: 2_s := sum(argument of sum(x) where (b <=> CAST(2 AS INT))) filter filter of sum(x) where (b <=> CAST(2 AS INT)), 2_m := max(argument of max(c) where (b <=> CAST(2 AS INT))) filter filter of sum(x) where (b <=> CAST(2 AS INT)), three_s := sum(argument of sum(x) where (b <=> CAST(2 AS INT))) filter filter of sum(x) where (b <=> CAST(3 AS INT)), three_m := max(argument of max(c) where (b <=> CAST(2 AS INT))) filter filter of sum(x) where (b <=> CAST(3 AS INT))
--   Project argument of sum(x) where (b <=> CAST(2 AS INT)) := x, filter of sum(x) where (b <=> CAST(2 AS INT)) := (b <=> 2), argument of max(c) where (b <=> CAST(2 AS INT)) := c, filter of sum(x) where (b <=> CAST(3 AS INT)) := (b <=> 3)
--     Scan t (b, c, x)
