#!/bin/sh
# Writes what an API server held after the operator of an earlier commit had made
# fleets: controllers/internal/pool/testdata/upgrade/make.sh <commit>
set -eu
commit=$(git rev-parse --short "$1")
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree"' EXIT
git worktree add --detach "$tree" "$commit"
# The commit's own test fits its packages. An earlier commit that has none takes this one.
test="$tree/controllers/internal/pool/testdata/upgrade/snapshot_test.go"
[ -e "$test" ] || test="$here/snapshot_test.go"
cp "$test" "$tree/controllers/internal/pool/snapshot_test.go"
cd "$tree"
UPGRADE_SNAPSHOT="$here/$commit.tar.gz" go test ./controllers/internal/pool -run '^TestSnapshot$' -count=1 -timeout=15m
