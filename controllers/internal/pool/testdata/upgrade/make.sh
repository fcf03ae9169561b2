#!/bin/sh
# Writes what an API server held after the operator of an earlier commit had made
# fleets: controllers/internal/pool/testdata/upgrade/make.sh <commit>
set -eu
commit=$(git rev-parse --short "$1")
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree"' EXIT
git worktree add --detach "$tree" "$commit"
cp "$here/snapshot_test.go" "$tree/controllers/internal/pool/snapshot_test.go"
cd "$tree"
UPGRADE_SNAPSHOT="$here/$commit.tar.gz" go test ./controllers/internal/pool -run '^TestSnapshot$' -count=1 -timeout=15m
