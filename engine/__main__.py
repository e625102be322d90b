"""``python -m engine`` is ``seqscope`` for machines where the project is not installed (a bare GPU box)."""

import sys

try:
    from engine.cli import main

    sys.exit(main())
except KeyboardInterrupt:  # before there is anything that is interrupted
    print("seqscope: interrupted", file=sys.stderr)
    sys.exit(130)
