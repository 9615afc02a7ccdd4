"""Music: polyphonic pieces, whose steps are frames of notes."""

COMMANDS = {"compose": "Write music as a MIDI file or as sound."}
"""The functions of the module `commands` that are commands of elman, and their lines in `elman --help`."""
