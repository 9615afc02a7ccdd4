"""Kinds of data besides text, one per folder: the record, how data are read, the task and the run, the commands.

A recipe names a kind by `data.kind`; its record (`NAME/record.py`, a subclass of `elman.config.data.Data`) names what
belongs to it. The packages import nothing, so that the command line can ask them for their commands at once.
"""
