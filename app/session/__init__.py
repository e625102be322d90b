"""What a visitor looks at, and the address that says the same. Knows no page, no figure and no model's files."""
