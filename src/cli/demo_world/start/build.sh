#!/bin/sh
# Compiles every module and writes the tables that training reads.
set -e
cd "$(dirname "$0")"
# By hash, since a checkout may change a file twice within one second of its time stamp.
python3 -m compileall -q --invalidation-mode checked-hash tinynn tools train.py
python3 tools/make_tables.py > tinynn/_tables.py
