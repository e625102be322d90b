"""``python -m engine`` is ``seqscope`` for machines where the project is not installed (a bare GPU box)."""

import sys

from engine.cli import main

sys.exit(main())
