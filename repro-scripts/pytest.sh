#!/bin/sh
# Bad (1): tests were run and some failed.
# Good (0): all passed.
# Skip (125): pytest was interrupted (2), broke (3), was used wrongly (4: the test file is not there
# yet, say), found no test (5), or is not installed.
#
# usage: pytest.sh [ARGUMENTS OF PYTEST]      e.g. pytest.sh -x tests/test_train.py -k resume
#
# An error while the tests are collected, such as an ImportError, is 2: a skip. PYTEST is the
# command to use instead of "python3 -m pytest".

# Unquoted on purpose: PYTEST may be several words.
# shellcheck disable=SC2086
${PYTEST:-python3 -m pytest} "$@"
status=$?
case $status in
    0) exit 0 ;;
    1)
        # "No module named pytest" is 1 as well.
        [ -n "${PYTEST:-}" ] || python3 -c 'import pytest' 2>/dev/null || exit 125
        exit 1
        ;;
    2 | 3 | 4 | 5) exit 125 ;;
    126 | 127) exit 125 ;;
    *) exit "$status" ;; # a crash: bad
esac
