"""`headgate demo`: live traffic, the throttle job and the page, together."""
