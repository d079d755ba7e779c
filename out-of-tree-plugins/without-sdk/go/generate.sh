#!/bin/sh
# Generates the stubs from the protocol's files, with protoc, protoc-gen-go and protoc-gen-go-grpc from the PATH.
set -eu
cd "$(dirname "$0")"
module=berth.dev/same-label
names="common identity scheduling state"
options="module=$module"
files=""
for name in $names; do
  options="$options,Mberth/plugin/v1/$name.proto=$module/pluginv1"
  files="$files berth/plugin/v1/$name.proto"
done
# shellcheck disable=SC2086 # one word for each file
protoc -I ../../../proto --go_out="$options:." --go-grpc_out="$options:." $files
