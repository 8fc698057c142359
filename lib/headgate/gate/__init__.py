"""`headgate gate`: a service that speaks the throttle protocol in frames to clients. No engine."""
