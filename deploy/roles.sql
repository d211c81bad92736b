-- The database and its two roles: the owner of the tables, which migrates, and the role of the service and the worker,
-- which gets its rights from `muster migrate`. PostgreSQL's container and Patroni run this once, when they initialize the
-- first database. To set other passwords, run it again as a superuser, with psql 15 or later:
--
--   POSTGRES_OWNER_PASSWORD=... POSTGRES_SERVICE_PASSWORD=... psql --file deploy/roles.sql postgres
\set ON_ERROR_STOP on
\set QUIET on
-- Not as arguments, which every account of the machine can read.
\getenv owner_password POSTGRES_OWNER_PASSWORD
\getenv service_password POSTGRES_SERVICE_PASSWORD
SELECT format('CREATE ROLE %I', name)
FROM unnest(ARRAY['muster_owner', 'muster']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec
ALTER ROLE muster_owner LOGIN PASSWORD :'owner_password';
ALTER ROLE muster LOGIN PASSWORD :'service_password';
-- The settings that Muster gives its sessions. Behind PgBouncer, which shares sessions, they are the role's.
ALTER ROLE muster SET statement_timeout = '10s';
ALTER ROLE muster SET lock_timeout = '5s';
ALTER ROLE muster SET idle_in_transaction_session_timeout = '30s';
ALTER ROLE muster SET max_parallel_workers_per_gather = 0;
ALTER ROLE muster SET jit = off;
SELECT 'CREATE DATABASE muster OWNER muster_owner'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'muster')
\gexec
-- Otherwise, every role of the server may connect to all three, and make temporary tables there. On a server with other
-- databases, grant CONNECT on `postgres` to the roles that need it.
REVOKE ALL ON DATABASE muster, postgres, template1 FROM PUBLIC;
GRANT CONNECT ON DATABASE muster TO muster_owner, muster;
