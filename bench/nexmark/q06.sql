SELECT
  q.seller,
  q.id,
  AVG(q.final) OVER (PARTITION BY q.seller ORDER BY q.date_time, q.id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT MAX(b.price) AS final, a.seller, a.id, a.date_time
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.seller, a.date_time
) AS q
