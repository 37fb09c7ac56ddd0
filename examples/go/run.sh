set -e
# buf is in PATH, or comes from npm.
command -v buf >/dev/null || buf() { npx --yes @bufbuild/buf@1.74.0 "$@"; }
buf generate
go run .
go test -count 1 ./...
