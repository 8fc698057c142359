"""Recorded traffic through the operator and the quota loop in event time: what a conf would do to it."""
