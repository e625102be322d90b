"""The one exception a command or a page shows to its user as it stands."""


class SeqscopeError(Exception):
    """Something the user can mend. The message says what is wrong, where, and what to do; it is shown without a traceback."""


class OtherRun(SeqscopeError):
    """A run folder holds what cannot be gone on with: a run of other settings or data, or a damaged one."""


class UsageError(SeqscopeError):
    """The command was called in a way it does not offer (exit code 2)."""


class Refused(SeqscopeError):
    """A file cannot be read, or is beyond a limit. The message does not name the file: whoever knows its name adds it."""


def of_system(error: OSError) -> str:
    """A path that is none, a folder that cannot be written, a full disk, in words."""
    return f"{'' if error.filename is None else f'{error.filename}: '}{error.strerror or error}"


def first_line(error: BaseException) -> str:
    """Of what a library said, for a message of ours; the kind of error where it said nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
