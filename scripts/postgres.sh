# A private PostgreSQL for tests and benchmarks. Sourced, with $work a folder that everybody may
# enter. It never touches a running server, and starts none but its own.

server=""

pg_root=${ICHIDO_PG_ROOT:-/usr/lib/postgresql}
newest_pg() {
  local found
  found=$(ls -d "$pg_root"/*/bin/postgres 2>/dev/null | sort -V | tail -1)
  [ -n "$found" ] && dirname "$found"
}
install_packages() {
  local run=()
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    run=(sudo -n)
  fi
  command -v apt-get >/dev/null || return 1
  echo "installing $* ..."
  # Debian's package would start a server of its own: not ours to have.
  "${run[@]}" mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] ||
    echo 'create_main_cluster = false' |
      "${run[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
  "${run[@]}" apt-get update -qq >/dev/null &&
    "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}
free_port() {
  python3 - 2>/dev/null <<'PY' || echo $((20000 + RANDOM % 20000))
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])
PY
}
# PostgreSQL refuses to run as root: as whom it runs instead.
ordinary_user() {
  as_user=()
  [ "$(id -u)" = 0 ] || return 0
  name=postgres
  id "$name" >/dev/null 2>&1 || name=nobody
  as_user=(setpriv "--reuid=$(id -u "$name")" "--regid=$(id -g "$name")" --clear-groups)
}
start_server() { # folder of binaries
  local bin=$1 data
  ordinary_user
  data=$(mktemp -d "$work/pg-XXXXXX")
  [ ${#as_user[@]} = 0 ] || chown "$name" "$data"
  local log="$data.log" port
  (cd "$data" && "${as_user[@]}" "$bin/initdb" -U postgres -A trust -E UTF8 --locale=C --no-sync \
    -D "$data/db") >"$log" 2>&1 || { cat "$log" >&2; return 1; }
  port=$(free_port)
  (cd "$data" && exec "${as_user[@]}" "$bin/postgres" -D "$data/db" -p "$port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories="$data" -c max_connections=300 \
    -c shared_buffers=256MB -c max_wal_size=2GB) >>"$log" 2>&1 &
  server=$!
  local tries
  for tries in $(seq 600); do
    grep -q "ready to accept connections" "$log" && break
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; return 1; }
    sleep 0.1
  done
  export ICHIDO_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port"
  export ICHIDO_PG_BIN="$bin"
  echo "PostgreSQL $("$bin/postgres" --version | grep -o '[0-9.]*' | head -1) on port $port"
}
# The folder of a server's binaries: found, or installed. Sets pg_bin.
need_postgres() {
  pg_bin=${ICHIDO_PG_BIN:-$(newest_pg)}
  [ -n "$pg_bin" ] && return 0
  install_packages postgresql || {
    echo "no PostgreSQL server found, and it may not be installed from here:" >&2
    echo "  apt-get install postgresql     (or set ICHIDO_PG_BIN to the folder of its binaries)" >&2
    return 1
  }
  pg_bin=$(newest_pg)
}
stop_server() {
  [ -n "$server" ] || return 0
  kill -INT "$server" 2>/dev/null
  wait "$server" 2>/dev/null
  server=""
}
