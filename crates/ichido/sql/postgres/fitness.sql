-- What makes this database unfit to acknowledge anything, with its fix; no row when it is fit.
-- Asked on every new connection, since a role's default or a failover can change it at any time.
SELECT CASE
    WHEN current_setting('server_version_num')::int < 140000
      THEN 'PostgreSQL ' || current_setting('server_version') || ' is too old: use 14 or newer'
    WHEN pg_is_in_recovery()
      THEN 'this server is a standby: point the database URL at the primary'
    WHEN current_setting('fsync') <> 'on'
      THEN 'fsync is off: a crash would lose what was acknowledged; set fsync = on'
    WHEN current_setting('full_page_writes') <> 'on'
      THEN 'full_page_writes is off: a crash could corrupt the database; set it on'
    ELSE 'synchronous_commit is ' || current_setting('synchronous_commit')
      || ': a crash would lose what was acknowledged; set it on for this role and database'
  END
 WHERE current_setting('server_version_num')::int < 140000
    OR pg_is_in_recovery()
    OR current_setting('fsync') <> 'on'
    OR current_setting('full_page_writes') <> 'on'
    OR current_setting('synchronous_commit') = 'off'
    OR (current_setting('synchronous_commit') = 'local'
        AND current_setting('synchronous_standby_names') <> '')
