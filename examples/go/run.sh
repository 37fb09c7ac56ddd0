set -e
# buf is in PATH, or: go install github.com/bufbuild/buf/cmd/buf@latest
buf generate
go run .
