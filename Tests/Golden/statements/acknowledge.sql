WITH leased AS MATERIALIZED (SELECT q.id FROM unnest($1, $2) AS mine (id, lease)
JOIN deliveries AS q ON q.id = mine.id AND q.lease = mine.lease ORDER BY q.id FOR UPDATE OF q) DELETE FROM deliveries AS q USING leased WHERE q.id = leased.id;
