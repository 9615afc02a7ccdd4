"""When NT-ASGD begins to average (Merity et al. 2018, Algorithm 1), as a loop over the validation losses."""


def triggers(losses, interval):
    """The index of the check at which averaging begins, or None.

    While on SGD: if there are more than n earlier losses, and the current one is above the best of those that
    are more than n checks old, averaging begins.
    """
    logs = []
    for index, loss in enumerate(losses):
        if len(logs) > interval:
            old = logs[: len(logs) - interval]
            if loss > min(old):
                return index
        logs.append(loss)
    return None
