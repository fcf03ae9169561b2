#!/bin/sh
# Starts Postgres as the official image does with POSTGRES_PASSWORD_FILE. The cluster
# appears whole or not at all: a container may be killed at any moment.
set -eu
if [ ! -e "$PGDATA" ]; then
  rm -rf "$PGDATA.new"
  initdb -D "$PGDATA.new" -U postgres --pwfile="$POSTGRES_PASSWORD_FILE" --encoding=UTF8 --locale=C --auth-local=trust --auth-host=scram-sha-256
  echo 'host all all all scram-sha-256' >>"$PGDATA.new/pg_hba.conf"
  mv "$PGDATA.new" "$PGDATA"
fi
exec postgres -D "$PGDATA" -c 'listen_addresses=*' "$@"
