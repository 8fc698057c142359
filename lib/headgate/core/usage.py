"""What is counted per topic and second, by column number: the order of columns wherever counts are kept as a matrix.

Publishes, messages and bytes are arrivals. In `admitted` traffic every arrival is admitted and the columns from
ADMITTED on stay 0; in `offered` traffic arrivals = admitted + failed + still withheld. All counts saturate at 64 bits.
"""

(
    PUBLISHES,
    MESSAGES,
    BYTES,
    THROTTLED,  # publishes that at least one limiter throttled
    BY_TOPIC,  # publishes that the topic's, broker's, group's limiter throttled: in the order of Scope
    BY_BROKER,
    BY_GROUP,
    THROTTLED_NS,  # time with a producer of the topic waiting in any limiter, since the end of the topic's last row
    ADMITTED,
    ADMITTED_MESSAGES,
    ADMITTED_BYTES,
    DELAYED,  # admitted after they arrived
    DELAY_NS,  # sum over the delayed
    MAX_DELAY_NS,
    FAILED,  # withheld longer than the client's send time-out
    FAILED_MESSAGES,
    FAILED_BYTES,
) = range(17)
USAGE_COLUMNS = 17
