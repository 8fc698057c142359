"""Adapters: how each kind of vector reaches the public core. One module per family of kinds."""
