"""Music: polyphonic pieces, whose steps are frames of notes."""

COMMANDS = {"Use": {"compose": ("commands:compose", "Write music as a MIDI file or as sound.")}}
"""By group of `elman --help`, or by family of commands, the functions of the kind's modules that are commands."""

OPTIONS = {
    "skip_unreadable": (
        "data.skip_unreadable",
        "of music, leave out files that cannot be read, and name them; the run remembers it, as it does --set"
        " data.skip_unreadable=true",
    )
}
"""Options of `elman train`: the key of a recipe and its values (none: true), and the help."""
