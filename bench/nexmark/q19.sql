SELECT auction, bidder, price, channel, url, date_time, extra, place
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, id) AS place
  FROM bid
) AS placed
WHERE place <= 10
