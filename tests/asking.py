"""Commands in this process: what they print, what they complain of."""

import csv
import io

from elman.cli import main


def output(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def complaint(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def table(text):
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def column(rows, name):
    return [float(row[name]) for row in rows if row[name]]
