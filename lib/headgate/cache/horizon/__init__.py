"""Mode horizon of the entry cache's job: a broker's topics in shards, each a key's, that meet after each round."""
