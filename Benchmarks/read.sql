\set n random(1, 2000)
SELECT s.collection, s.stamp FROM collection_stamps AS s WHERE s.user_id = (SELECT id FROM benchmark_users WHERE n = :n);
