"""A small shop: every order sends a receipt by e-mail and tells the seller's own system by webhook."""
