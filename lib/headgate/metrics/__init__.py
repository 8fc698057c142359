"""Metrics of a running job for Prometheus: counted from the rows of each batch, told over HTTP. No engine."""

from headgate.metrics.counting import Metrics
from headgate.metrics.endpoint import check_port, serving, url_of
from headgate.metrics.quota_series import QuotaFigures

__all__ = ["Metrics", "QuotaFigures", "check_port", "serving", "url_of"]
