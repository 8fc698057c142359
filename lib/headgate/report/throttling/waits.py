"""For how long publishes waited: sums over the table `topic_usage`."""

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.numbers import SECOND_NS

GIVEN_UP_S = 30
"""About so long waits what fails."""


def waited_s(usage: pa.Table) -> pa.ChunkedArray:
    """Of the publishes of each row that came late, failed or still wait, together: the latter as long as those that
    came late, or a second. In admitted traffic a second each that left a limiter empty.
    """
    admitted = usage["admitted_publishes"]
    publishes, failed, late, delay_ns = (
        pc.cast(pc.fill_null(usage[name], 0), pa.float64())
        for name in ("publishes", "failed_publishes", "delayed_publishes", "delay_ns")
    )
    late_s = pc.divide(delay_ns, SECOND_NS)
    mean_s = pc.if_else(pc.greater(late, 0), pc.divide(late_s, pc.max_element_wise(late, 1)), 1)
    still = pc.subtract(pc.subtract(publishes, admitted), failed)
    waited = pc.add(pc.add(late_s, pc.multiply(failed, GIVEN_UP_S)), pc.multiply(still, mean_s))
    return pc.if_else(
        pc.is_null(admitted), pc.cast(pc.fill_null(usage["throttled_publishes"], 0), pa.float64()), waited
    )
