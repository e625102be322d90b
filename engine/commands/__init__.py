"""One module per sub-command: `configure(parser)` declares its options, `run(args)` carries it out."""
