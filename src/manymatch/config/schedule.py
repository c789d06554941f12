"""Keys of a schedule that nothing reads."""

from manymatch.config.preset import Schedule
from manymatch.util.errors import ConfigError


def check_schedule(schedule: Schedule, where: str) -> None:
    """Refuse a key of another schedule: nothing would read the value. `where` begins the message.

    A key with the value of its default passes, because the file of a whole preset states all keys.
    """
    name = schedule.name
    read, form = {"name", "warmup_epochs"}, f"{name}"
    if name == "step" and schedule.milestones is None:
        read |= {"factor", "every"}
    elif name == "step":
        read |= {"factor", "milestones"}
        form += " with milestones"
    elif name == "cosine" and schedule.restarts:
        read |= {"factor", "restarts", "period"}
    elif name == "cosine":
        read |= {"restarts", "period"}
        form += " without restarts"
    for key, field in Schedule.model_fields.items():
        if key not in read and getattr(schedule, key) != field.default:
            raise ConfigError(
                f"{where}training.schedule.{key}: the schedule {form} does not read this key. "
                "Leave the key out, or replace the whole group by training.schedule="
                f"'{{name: {name}}}'"
            )
