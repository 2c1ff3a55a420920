"""The pure floor: policies, encoding, rotation, without a database."""
