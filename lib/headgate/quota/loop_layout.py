"""One job for all brokers, or one job a broker: what the settings have to say for each (resource-groups 5, 10)."""

from collections.abc import Iterator

from headgate.core.quota.settings import MembershipSource, QuotaSettings
from headgate.core.settings_keys import Mistake


def layout_mistakes(settings: QuotaSettings, broker: str | None) -> Iterator[Mistake]:
    """What the settings lack. broker: the one that the job is for, None for a job for all.

    A broker's job whose tables are not those of the others would hear of nobody and take every quota for itself. Either
    all tables of the exchange are somewhere that all jobs know, or none is and the number of brokers is given.
    """
    yield from settings.layout_mistakes(job_per_broker=broker is not None)
    if broker is None or settings.usage_table is None:
        return
    shared = {
        "resourceGroupGroupTable": settings.group_table,
        "resourceGroupAttachmentTable": settings.attachment_table,
    }
    if settings.membership is MembershipSource.TABLE:
        shared["resourceGroupMemberTable"] = settings.member_table
    for key, location in shared.items():
        if location is None:
            remedy = "set it to the table that the jobs of all brokers use, as resourceGroupUsageTable is"
            yield Mistake(key, "nothing", "the location of a table in a job of one broker", remedy)


def has_transport(settings: QuotaSettings, broker: str | None) -> bool:
    """Whether there is a table over which brokers hear of each other. Source: resource-groups 10."""
    return broker is None or settings.usage_table is not None
