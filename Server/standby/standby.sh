#!/bin/sh
# Runs a hot standby of docker-compose.yml: copies the primary if there is no copy yet, and follows it.
#
# The copy appears under its name only when it is whole, so a copy that was interrupted begins again.
# Delete the volume "standby" to copy again, for example after the primary was restored from a backup.
set -eu

primary=${FERRY_PRIMARY:-postgres}
data=${PGDATA:-/var/lib/postgresql/data}

if [ ! -s "$data/main/PG_VERSION" ]; then
  rm -rf "$data/new"
  # -R writes standby.signal and the address of the primary. The slot makes the primary keep the part
  # of its log that the standby has not read; max_slot_wal_keep_size bounds it.
  pg_basebackup -h "$primary" -U ferry -D "$data/new" -R -X stream --checkpoint=fast \
    -C -S ferry_standby 2>/dev/null \
    || { rm -rf "$data/new"
      pg_basebackup -h "$primary" -U ferry -D "$data/new" -R -X stream --checkpoint=fast \
        -S ferry_standby; }
  chmod 0700 "$data/new"
  mv "$data/new" "$data/main"
fi
# hot_standby_feedback: a pull on the standby is not ended by the primary's VACUUM.
exec postgres -D "$data/main" -c hot_standby=on -c hot_standby_feedback=on
