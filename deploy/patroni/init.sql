-- Patroni runs this once, when it makes the first database: /etc/patroni/init.sql, with roles.sql next to it.
\ir roles.sql
-- After a failover, pg_rewind brings the old primary back. It connects to `postgres`, from which roles.sql bars all
-- others. Patroni gives the role its password.
CREATE ROLE rewind;
GRANT CONNECT ON DATABASE postgres TO rewind;
