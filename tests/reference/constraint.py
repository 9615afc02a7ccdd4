"""The projections of Kanai's thesis, chapter 3, in NumPy, by full singular value decompositions."""

import numpy as np


def algorithm_3_1(w, delta):
    """Eqs 3.13-3.15."""
    u, sigma, vt = np.linalg.svd(w)
    return u @ np.diag(np.minimum(sigma, 2 - delta)) @ vt


def algorithm_3_2(w0, steps, delta, *, level=2.0):
    """Lines 1-17 for a sequence of steps already multiplied by the rate; gives each (w, s).

    The errata are applied: s is counted from zero at each step, and after line 16 the bounds of what was computed are
    min(sigma_i, 2 - delta), sorted with the rest.
    """
    w = w0.copy()
    bound = np.linalg.svd(w, compute_uv=False)
    for step in steps:
        w = w + step
        c = np.linalg.norm(step)
        s = 0
        for i in range(len(bound)):
            bound[i] = bound[i] + c
            if bound[i] >= level:
                s = i + 1
        if s > 0:
            u, sigma, vt = np.linalg.svd(w)
            for i in range(s):
                w = w - max(sigma[i] - (2 - delta), 0) * np.outer(u[:, i], vt[i])
                bound[i] = min(sigma[i], 2 - delta)
            bound = np.sort(bound)[::-1]
        yield w, s


def circular_map(kernel, size):
    """The dense matrix of a circular convolution with K [O, I, a, b] on images [n, m]; y_o[p] = sum K x_i[p + a]."""
    (outs, ins, *taps), (n, m) = kernel.shape, size
    dense = np.zeros((outs, n, m, ins, n, m))
    for o, i, a, b, p, q in np.ndindex(outs, ins, *taps, n, m):
        dense[o, p, q, i, (p + a) % n, (q + b) % m] += kernel[o, i, a, b]
    return dense.reshape(outs * n * m, ins * n * m)


def singular_values_of_convolution(kernel, size):
    """Sedghi, Gupta & Long 2019, section 2: SVDs of the transfer matrices of K [a, b, I, O]."""
    return np.linalg.svd(np.fft.fft2(kernel, size, axes=[0, 1]), compute_uv=False)


def clipped_convolution(kernel, size, bound):
    """Sedghi, Gupta & Long 2019, section 3, of K [a, b, I, O]: values cut at the bound, then what leaves the taps."""
    u, values, vh = np.linalg.svd(np.fft.fft2(kernel, size, axes=[0, 1]), full_matrices=False)
    clipped = np.fft.ifft2((u * np.minimum(values, bound)[..., None, :]) @ vh, axes=[0, 1]).real
    return clipped[: kernel.shape[0], : kernel.shape[1]]


def zhang(u, s, v, radius):
    """W = H_n(u_n) ... H_1(u_1) S (H_n(v_n) ... H_1(v_1))^T (Zhang, Lei & Dhillon 2018); column j of u is u_{n-j}."""

    def side(vectors):
        n, product = len(vectors), np.eye(len(vectors))
        for j in range(vectors.shape[1]):
            y = np.concatenate([np.zeros(j), vectors[j:, j]])
            product = product @ (np.eye(n) - 2 * np.outer(y, y) / (y @ y))
        return product

    sigma = 2 * radius * (1 / (1 + np.exp(-s)) - 0.5) + 1
    return side(u) @ np.diag(sigma) @ side(v).T
