"""What the tables themselves refuse."""
