"""A picture as three planes of floats, stored column by column: what stands on the ground fills columns from somewhere
down to the bottom, and that is a copy of a slice, which is fast. Floats, so that gradients get their grain before they are
rounded, and show no bands."""

import math
from array import array

SUBCOLUMNS = 4  # samples across a pixel; down a column, coverage is exact


def smooth(t):
    t = 0.0 if t < 0 else 1.0 if t > 1 else t
    return t * t * (3 - 2 * t)


def mix(a, b, t):
    return tuple(p + (q - p) * t for p, q in zip(a, b))


def ramp(stops, t):
    """The colour at `t` in 0..1 of stops that are equally far apart."""
    at = max(0.0, min(0.9999, t)) * (len(stops) - 1)
    return mix(stops[int(at)], stops[int(at) + 1], at - int(at))


def ellipse(cx, cy, rx, ry, turn=0.0, points=None):
    count = points or max(12, min(96, int(2.5 * math.sqrt(max(rx, ry)) * 4)))
    c, s = math.cos(turn), math.sin(turn)
    around = ((rx * math.cos(a), ry * math.sin(a)) for a in (2 * math.pi * i / count for i in range(count)))
    return [(cx + x * c - y * s, cy + x * s + y * c) for x, y in around]


class Canvas:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.planes = [array("f", bytes(4 * width * height)) for _ in range(3)]

    def gradient(self, stops, power=1.0):
        """Fills everything, from the top down."""
        column = [ramp(stops, (y / self.height) ** power) for y in range(self.height)]
        for i in range(3):
            self.planes[i] = array("f", [colour[i] for colour in column]) * self.width

    def shade(self, stops, top, bottom):
        """A column of colours between two heights, for `curtain`."""
        span = max(1.0, bottom - top)
        colours = [ramp(stops, (y - top) / span) for y in range(self.height)]
        return [array("f", [colour[i] for colour in colours]) for i in range(3)]

    def curtain(self, tops, shade):
        """Fills each column from its top down to the bottom of the picture."""
        height = self.height
        for x, top in enumerate(tops):
            first = max(0, math.ceil(top))
            if first > height:
                continue
            base = x * height
            covered = first - top
            for plane, colours in zip(self.planes, shade):
                plane[base + first:base + height] = colours[first:]
                if first > 0 and covered > 0:
                    at = base + first - 1
                    plane[at] += (colours[first - 1] - plane[at]) * min(1.0, covered)

    def blend(self, x, first, alphas, colour):
        """Lays a colour over a part of one column."""
        if first < 0:
            alphas, first = alphas[-first:], 0
        alphas = alphas[:max(0, self.height - first)]
        if not alphas or not 0 <= x < self.width:
            return
        at = x * self.height + first
        end = at + len(alphas)
        for plane, c in zip(self.planes, colour):
            plane[at:end] = array("f", [v + (c - v) * a for v, a in zip(plane[at:end], alphas)])

    def span(self, x, top, bottom, colour, alpha=1.0):
        """A part of one column with soft ends."""
        first, last = math.floor(top), math.ceil(bottom)
        if last <= first or last <= 0 or first >= self.height:
            return
        alphas = [alpha] * (last - first)
        alphas[0] -= alpha * (top - first)
        alphas[-1] -= alpha * (last - bottom)
        self.blend(x, first, alphas, colour)

    def lens(self, cx, cy, rx, ry, colour, alpha=1.0):
        """A flat ellipse: a glint, a wisp. Its ends are thin, so one sample a column is enough."""
        for x in range(max(0, math.ceil(cx - rx)), min(self.width, math.floor(cx + rx) + 1)):
            half = ry * math.sqrt(max(0.0, 1 - ((x - cx) / rx) ** 2))
            self.span(x, cy - half, cy + half, colour, alpha)

    def polygon(self, points, colour, alpha=1.0):
        """Fills it by the even-odd rule, with soft edges."""
        left = max(0, math.floor(min(x for x, _ in points)))
        right = min(self.width, math.ceil(max(x for x, _ in points)))
        if right <= left:
            return
        cuts = cuts_of(points, left, right)
        for x in range(left, right):
            samples = cuts[(x - left) * SUBCOLUMNS:(x - left + 1) * SUBCOLUMNS]
            heights = [y for each in samples for y in each]
            if not heights:
                continue
            low = math.floor(min(heights))
            cover = [0.0] * (math.floor(max(heights)) + 1 - low)
            for each in samples:
                each.sort()
                for top, bottom in zip(each[::2], each[1::2]):
                    add_cover(cover, top - low, bottom - low, alpha / SUBCOLUMNS)
            self.blend(x, low, cover, colour)

    def stroke(self, points, widths, colour, alpha=1.0):
        """A line with a width at each of its points, as one shape."""
        one, other = [], []
        for i, (x, y) in enumerate(points):
            ax, ay = points[max(0, i - 1)]
            bx, by = points[min(len(points) - 1, i + 1)]
            length = math.hypot(bx - ax, by - ay) or 1.0
            nx, ny = -(by - ay) / length * widths[i] / 2, (bx - ax) / length * widths[i] / 2
            one.append((x + nx, y + ny))
            other.append((x - nx, y - ny))
        self.polygon(one + other[::-1], colour, alpha)

    def glow(self, cx, cy, radius, colour, strength, power=2.0):
        """Light that fades outwards."""
        steps = 512
        table = [strength * (1 - math.sqrt(i / steps)) ** power for i in range(steps)] + [0.0]
        scale = steps / (radius * radius)
        first, last = max(0, int(cy - radius)), min(self.height, int(cy + radius) + 1)
        down = [(y - cy) ** 2 * scale for y in range(first, last)]
        for x in range(max(0, int(cx - radius)), min(self.width, int(cx + radius) + 1)):
            across = (x - cx) ** 2 * scale
            self.blend(x, first, [table[min(steps, int(across + d))] for d in down], colour)

    def spark(self, x, y, colour, alpha):
        """A point of light between pixels."""
        left, top = math.floor(x), math.floor(y)
        fx, fy = x - left, y - top
        for i, share in ((left, 1 - fx), (left + 1, fx)):
            self.blend(i, top, [alpha * share * (1 - fy), alpha * share * fy], colour)

    def veil(self, field, colour, alpha_of, first=0, last=None):
        """Lays a colour over everything between two heights, as strong as `alpha_of(noise, y)` says."""
        last = self.height if last is None else last
        for x in range(self.width):
            column = field.column(x)
            self.blend(x, first, [alpha_of(column[y], y) for y in range(first, last)], colour)

    def mirror(self, horizon, tint, strength, blur):
        """What stands above the horizon is seen below it, upside down, tinted, and drawn out sideways by the ripples."""
        height, last = self.height, self.width - 1
        top = max(0, 2 * horizon - height)
        share, shifts = (1 - strength) / 5, (-2 * blur, -blur, 0, blur, 2 * blur)
        for x in range(self.width):
            at = x * height + horizon
            bases = [max(0, min(last, x + shift)) * height for shift in shifts]
            for plane, c in zip(self.planes, tint):
                five = zip(*(plane[base + top:base + horizon] for base in bases))
                mirrored = array("f", [sum(values) * share + c * strength for values in five])
                mirrored.reverse()
                plane[at:at + len(mirrored)] = mirrored

    def rows(self, grain, finish):
        """The rows as bytes. `finish(r, g, b)` has the last word on a row's lists of colours."""
        width, height = self.width, self.height
        size = len(grain)
        for y in range(height):
            start = (y * 7919) % (size - width)
            noise = grain[start:start + width]
            r, g, b = finish(*(plane[y::height] for plane in self.planes))
            row = bytearray(3 * width)
            for i, channel in enumerate((r, g, b)):
                row[i::3] = bytes([0 if v < 0 else 255 if v > 255 else int(v) for v in map(float.__add__, channel, noise)])
            yield bytes(row)


def cuts_of(points, left, right):
    """Where the edges of a polygon cross each of the lines on which columns are sampled."""
    count = (right - left) * SUBCOLUMNS
    cuts = [[] for _ in range(count)]
    for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1]):
        if ax > bx:
            ax, ay, bx, by = bx, by, ax, ay
        # A sample belongs to the edges that begin at or before it and end behind it, so that corners count once.
        first = max(0, math.ceil((ax - left) * SUBCOLUMNS - 0.5))
        last = min(count, math.ceil((bx - left) * SUBCOLUMNS - 0.5))
        if first < last:
            slope = (by - ay) / (bx - ax)
            start = ay + (left + 0.5 / SUBCOLUMNS - ax) * slope
            step = slope / SUBCOLUMNS
            for i in range(first, last):
                cuts[i].append(start + i * step)
    return cuts


def add_cover(cover, top, bottom, share):
    first, last = int(top), min(int(bottom), len(cover) - 1)
    if first == last:
        cover[first] += share * (bottom - top)
        return
    cover[first] += share * (first + 1 - top)
    for y in range(first + 1, last):
        cover[y] += share
    cover[last] += share * (bottom - last)


class Noise:
    """Smooth noise in 0..1 over the picture, in several octaves; made on a coarse grid and drawn out between."""

    STEP = 4

    def __init__(self, rng, width, height, cell_x, cell_y, octaves=4):
        self.height = height
        columns, rows = width // self.STEP + 2, height // self.STEP + 2
        total = sum(0.5 ** i for i in range(octaves))
        grid = [[0.0] * rows for _ in range(columns)]
        for octave in range(octaves):
            self._add(grid, rng, cell_x / 2 ** octave / self.STEP, cell_y / 2 ** octave / self.STEP, 0.5 ** octave / total)
        self.grid = grid

    @staticmethod
    def _add(grid, rng, cell_x, cell_y, weight):
        cell_x, cell_y = max(1.0, cell_x), max(1.0, cell_y)
        tall = int(len(grid[0]) / cell_y) + 2
        lattice = [[rng.random() for _ in range(tall)] for _ in range(int(len(grid) / cell_x) + 2)]
        down = [(int(y / cell_y), smooth(y / cell_y % 1)) for y in range(len(grid[0]))]
        for x, column in enumerate(grid):
            at = x / cell_x
            f = smooth(at % 1)
            between = [a + (b - a) * f for a, b in zip(lattice[int(at)], lattice[int(at) + 1])]
            for y, (i, g) in enumerate(down):
                column[y] += weight * (between[i] + (between[i + 1] - between[i]) * g)

    def column(self, x):
        i, f = x // self.STEP, x % self.STEP / self.STEP
        coarse = [a + (b - a) * f for a, b in zip(self.grid[i], self.grid[i + 1])]
        out = []
        for a, b in zip(coarse, coarse[1:]):
            d = (b - a) / 4
            out += (a, a + d, a + d + d, b - d)
        return out

    def at(self, x, y):
        column = self.grid[max(0, min(len(self.grid) - 1, int(x / self.STEP)))]
        return column[max(0, min(len(column) - 1, int(y / self.STEP)))]


def ridge(rng, width, base, rise, cell, octaves=6, roughness=0.5, sharp=False):
    """A line of hills: the height of its top in each column. Sharp ones have peaks where others have domes."""
    tops = [0.0] * width
    weight, total = 1.0, 0.0
    for _ in range(octaves):
        knots = [rng.random() for _ in range(int(width / cell) + 3)]
        shift = rng.random() * cell
        for x in range(width):
            at = (x + shift) / cell
            i = int(at)
            value = knots[i] + (knots[i + 1] - knots[i]) * smooth(at - i)
            tops[x] += weight * (1 - abs(2 * value - 1) if sharp else value)
        total += weight
        weight *= roughness
        cell = max(2.0, cell / 2)
    return [base - rise * top / total for top in tops]
