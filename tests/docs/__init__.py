"""The documentation: what it quotes runs, and what it lists is what the code has."""
