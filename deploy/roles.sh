#!/bin/sh
# Runs once, in PostgreSQL's container, when its database is made: creates the owner of the tables, which migrates, and
# the role of the service and the worker, which gets its rights from `muster migrate`.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set owner_password="$POSTGRES_OWNER_PASSWORD" --set service_password="$POSTGRES_SERVICE_PASSWORD" <<'SQL'
CREATE ROLE muster_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE muster LOGIN PASSWORD :'service_password';
CREATE DATABASE muster OWNER muster_owner;
REVOKE CONNECT ON DATABASE muster FROM PUBLIC;
GRANT CONNECT ON DATABASE muster TO muster_owner, muster;
SQL
