SELECT id, item_name, seller, category, auction, bidder, price, bid_date_time
FROM (
  SELECT
    a.id,
    a.item_name,
    a.seller,
    a.category,
    b.auction,
    b.bidder,
    b.price,
    b.date_time AS bid_date_time,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.id) AS place
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
) AS placed
WHERE place <= 1
