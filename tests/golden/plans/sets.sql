SELECT DISTINCT a, c FROM t
-- columns: a INT, c STRING
-- key: a, c
-- Aggregate by a, c
--   Scan t (a, c)

SELECT a FROM t UNION SELECT v FROM u
-- columns: a INT
-- key: a
-- Aggregate by a
--   UnionAll
--     Scan t (a)
--     Scan u (v)

SELECT a, c FROM t WHERE b > 1 INTERSECT SELECT v, name FROM u
-- columns: a INT, c STRING
-- key: a, c
-- Project a := a, c := c
--   Filter ((left_rows > 0) AND (right_rows > 0))
--     Aggregate by a, c: left_rows := count_star() filter in_left, right_rows := count_star() filter in_right
--       UnionAll
--         Project a := a, c := c, in_left := True, in_right := False
--           Filter (b > 1)
--             Scan t (a, b, c)
--         Project a := v, c := name, in_left := False, in_right := True
--           Scan u (v, name)

SELECT a FROM t EXCEPT SELECT v FROM u WHERE v > 1
-- columns: a INT
-- key: a
-- Project a := a
--   Filter ((left_rows > 0) AND (right_rows = 0))
--     Aggregate by a: left_rows := count_star() filter in_left, right_rows := count_star() filter in_right
--       UnionAll
--         Project a := a, in_left := True, in_right := False
--           Scan t (a)
--         Project a := v, in_left := False, in_right := True
--           Filter (v > 1)
--             Scan u (v)

SELECT a FROM t INTERSECT ALL SELECT v FROM u
-- columns: a INT
-- hidden: __key_0_copy BIGINT NOT NULL
-- key: a, __key_0_copy
-- Repeat
--   Filter (__key_0_copy > 0)
--     Project a := a, __key_0_copy := least(left_rows, right_rows)
--       Aggregate by a: left_rows := count_star() filter in_left, right_rows := count_star() filter in_right
--         UnionAll
--           Project a := a, in_left := True, in_right := False
--             Scan t (a)
--           Project a := v, in_left := False, in_right := True
--             Scan u (v)

SELECT b FROM t EXCEPT ALL SELECT v FROM u
-- columns: b INT
-- hidden: __key_0_copy BIGINT NOT NULL
-- key: b, __key_0_copy
-- Repeat
--   Filter (__key_0_copy > 0)
--     Project b := b, __key_0_copy := (left_rows - right_rows)
--       Aggregate by b: left_rows := count_star() filter in_left, right_rows := count_star() filter in_right
--         UnionAll
--           Project b := b, in_left := True, in_right := False
--             Scan t (b)
--           Project b := v, in_left := False, in_right := True
--             Scan u (v)

SELECT a FROM t UNION SELECT v FROM u INTERSECT SELECT t_k FROM u
-- columns: a BIGINT
-- key: a
-- Aggregate by a
--   UnionAll
--     Project a := cast(a as bigint)
--       Scan t (a)
--     Project a := v
--       Filter ((left_rows > 0) AND (right_rows > 0))
--         Aggregate by v: left_rows := count_star() filter in_left, right_rows := count_star() filter in_right
--           UnionAll
--             Project v := cast(v as bigint), in_left := True, in_right := False
--               Scan u (v)
--             Project v := t_k, in_left := False, in_right := True
--               Scan u (t_k)

SELECT a, c, COUNT(*) AS n, SUM(a) AS s FROM t GROUP BY ROLLUP (a, c)
-- columns: a INT, c STRING, n BIGINT NOT NULL, s BIGINT
-- hidden: __key_0___grouping INT NOT NULL
-- key: a, c, __key_0___grouping
-- Project a := a, c := c, n := count(*), s := sum(a), __key_0___grouping := __grouping
--   Aggregate by a, c, __grouping: count(*) := count_star(), sum(a) := sum(argument of sum(a))
--     Expand into 3 rows: a, c, __grouping, argument of sum(a)
--       Project a := a, c := c, argument of sum(a) := a
--         Scan t (a, c)

SELECT a, c, GROUPING(a) AS g, GROUPING_ID(a, c) AS i, MAX(b) AS m FROM t GROUP BY CUBE (a, c)
-- columns: a INT, c STRING, g TINYINT NOT NULL, i BIGINT NOT NULL, m INT
-- hidden: __key_0___grouping INT NOT NULL
-- key: a, c, __key_0___grouping
-- Project a := a, c := c, g := case((__grouping = 0), 0, (__grouping = 1), 0, (__grouping = 2), 1, 1), i := case((__grouping = 0), 0, (__grouping = 1), 1, (__grouping = 2), 2, 3), m := max(b), __key_0___grouping := __grouping
--   Aggregate by a, c, __grouping: max(b) := max(argument of max(b))
--     Expand into 4 rows: a, c, __grouping, argument of max(b)
--       Project a := a, c := c, argument of max(b) := b
--         Scan t (a, b, c)

SELECT a, c, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a, c), a, a, ())
-- columns: a INT, c STRING, n BIGINT NOT NULL
-- hidden: __key_0___grouping INT NOT NULL
-- key: a, c, __key_0___grouping
-- Project a := a, c := c, n := count(*), __key_0___grouping := __grouping
--   Aggregate by a, c, __grouping: count(*) := count_star()
--     Expand into 4 rows: a, c, __grouping
--       Scan t (a, c)
