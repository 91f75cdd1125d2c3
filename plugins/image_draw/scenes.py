"""Composes pictures: landscapes of layers, the sky at night, flowers, currents and circles."""

import math

from canvas import Canvas, Noise, ellipse, mix, ramp, ridge, smooth

WHITE = (255, 255, 255)
STANDING = {"cat", "person", "house", "tree"}
GROUND = {"mountains", "sea", "lake", "forest", "city", "desert", "meadow"}


def choose(motifs, palette_name, rng):
    """Which composition shows these motifs; if none of them says it, chance does."""
    for name in ("space", "flow", "circles"):
        if name in motifs and not motifs & GROUND:
            return name
    if "flowers" in motifs and not motifs & (GROUND - {"meadow"} | STANDING):
        return "flowers"
    if motifs or palette_name not in ("own", "colour"):
        return "landscape"
    return rng.choice(("flow", "circles", "landscape", "flow"))


class Scene:
    def __init__(self, width, height, palette, palette_name, motifs, rng, tell):
        self.canvas = Canvas(width, height)
        self.w, self.h, self.rng, self.tell = width, height, rng, tell
        self.unit = math.sqrt(width * height) / 627  # 1 at 768 x 512, so that large pictures are not finer ones
        self.palette, self.palette_name, self.motifs = palette, palette_name, motifs
        self.dark = palette_name in ("night", "violet", "fire") or sum(palette["sky"][0]) < 120

    def draw(self, composition):
        getattr(self, composition)()
        return self.canvas

    # -- The sky

    def sky(self, horizon):
        stops = self.palette["sky"]
        rest = stops[-1]
        below = max(1, round(len(stops) * (self.h - horizon) / max(1, horizon)))
        self.canvas.gradient(stops + [rest] * below, 0.9)

    def stars(self, until, density=1.0):
        rng = self.rng
        for _ in range(int(density * self.w * until / (900 * self.unit ** 2))):
            x, y = rng.uniform(0, self.w), rng.uniform(0, until)
            strength = rng.random() ** 3 * (1 - 0.7 * y / until)
            tint = mix(WHITE, rng.choice(self.palette["accents"]), 0.35 * rng.random())
            self.canvas.spark(x, y, tint, 0.25 + 0.75 * strength)
            if strength > 0.72:
                self.canvas.glow(x, y, 7 * self.unit, tint, 0.55, 3)

    def sun(self, x, y, radius):
        light = self.palette["light"]
        self.canvas.glow(x, y, max(self.w, self.h) * 0.62, light, 0.34 if self.dark else 0.5, 2.6)
        self.canvas.glow(x, y, radius * 4.2, light, 0.6, 2.4)
        self.canvas.polygon(ellipse(x, y, radius, radius), mix(light, WHITE, 0.35), 0.97)

    def moon(self, x, y, radius):
        light = self.palette["light"]
        self.canvas.glow(x, y, self.h * 0.75, light, 0.26, 2.8)
        self.canvas.glow(x, y, radius * 2.6, light, 0.4, 2.2)
        self.canvas.polygon(ellipse(x, y, radius, radius), light)
        for _ in range(9):  # its seas
            turn, far, size = self.rng.uniform(0, 6.28), self.rng.uniform(0, 0.62), self.rng.uniform(0.1, 0.26)
            spot = ellipse(x + math.cos(turn) * far * radius, y + math.sin(turn) * far * radius,
                           size * radius, size * radius * 0.85, turn)
            self.canvas.polygon(spot, mix(light, self.palette["far"], 0.5), 0.22)

    def clouds(self, until, strength):
        field = Noise(self.rng, self.w, self.h, 260 * self.unit, 70 * self.unit, 5)
        sky = self.palette["sky"]
        colour = mix(sky[-1], self.palette["light"], 0.6) if not self.dark else mix(sky[-1], sky[1], 0.2)
        limit = self.rng.uniform(0.46, 0.53)
        fade = [math.sin(math.pi * min(1.0, y / until) ** 0.8) if y < until else 0.0 for y in range(self.h)]
        self.canvas.veil(field, colour, lambda n, y: strength * fade[y] * smooth((n - limit) / 0.22), 0, int(until))

    def aurora(self, until):
        rng = self.rng
        for band in range(3):
            line = ridge(rng, self.w, until * (0.75 - 0.12 * band), until * 0.4, self.w / 3, 3, 0.4)
            rays = ridge(rng, self.w, 1, 1, 26 * self.unit, 3, 0.6)
            colour = ((70, 240, 170), (90, 200, 255), (200, 110, 255))[band]
            for x in range(self.w):
                length = until * (0.28 + 0.4 * rays[x])
                tall = int(length)
                alphas = [0.6 * (1 - rays[x] * 0.6) * (i / tall) ** 2.2 for i in range(tall)]
                alphas += [alphas[-1] * (1 - i / 14) for i in range(14)]
                self.canvas.blend(x, int(line[x] - length), alphas, mix(colour, (160, 90, 255), 0.25 * rays[x]))

    # -- The ground

    def layer_colour(self, depth):
        """From the haze at the horizon to what is near; depth 0..1."""
        haze = mix(self.palette["far"], self.palette["sky"][-1], 0.62)
        return ramp([haze, self.palette["far"], mix(self.palette["far"], self.palette["near"], 0.62), self.palette["near"]],
                    depth)

    def haze_over(self, tops, depth, bottom):
        """The colours of one layer: its own at the top, mist at its foot."""
        own = self.layer_colour(depth)
        foot = mix(own, self.palette["sky"][-1], 0.42 * (1 - depth) + 0.05)
        return self.canvas.shade([own, mix(own, foot, 0.45), foot], min(tops), bottom)

    def ridges(self, horizon, count, first=0.0, last=1.0, rise=0.34, bottom=None):
        bottom = bottom or self.h
        for i in range(count):
            depth = first + (last - first) * i / max(1, count - 1)
            base = horizon + (bottom - horizon) * (i / count) ** 1.3 * 1.05 + 6
            tops = ridge(self.rng, self.w, base, self.h * rise * (1.25 - 0.75 * i / count), self.w / (2.2 + i * 0.9), 8,
                         0.47, sharp=True)
            if i == 0 and self.palette_name == "snow" or "snowfall" in self.motifs and i < 2:
                self.canvas.curtain(tops, self.haze_over(tops, depth, base + self.h * 0.12))
                self.snow_caps(tops, depth)
            else:
                self.canvas.curtain(tops, self.haze_over(tops, depth, base + self.h * 0.12))
            self.tell(0.3 + 0.3 * i / count)

    def snow_caps(self, tops, depth):
        top, low = min(tops), max(tops)
        jag = ridge(self.rng, self.w, 0, -1, 22 * self.unit, 4, 0.6)
        for x, y in enumerate(tops):
            reach = (low - top) * 0.55 * max(0.0, 1 - (y - top) / ((low - top) * 0.75 + 1)) * (0.35 + jag[x])
            if reach > 1:
                self.canvas.span(x, y, y + reach, mix(WHITE, self.layer_colour(depth), 0.12), 0.85)

    def pines(self, base, size, count, depth):
        """A line of pines on a strip of ground."""
        ground = ridge(self.rng, self.w, base, size * 0.4, self.w / 3, 4)
        colour = self.layer_colour(depth)
        for _ in range(count):
            x = self.rng.uniform(-size * 0.2, self.w + size * 0.2)
            foot = ground[max(0, min(self.w - 1, int(x)))] + size * 0.06
            self.pine(x, foot, size * self.rng.uniform(0.55, 1.2),
                      mix(colour, self.layer_colour(max(0.0, depth - 0.2)), 0.35 * self.rng.random()))
        self.canvas.curtain(ground, self.haze_over(ground, depth, base + size * 0.8))

    def pine(self, x, foot, tall, colour):
        """Tiers of branches; each hangs out a little further than the next one begins."""
        half = tall * self.rng.uniform(0.15, 0.2)
        tiers = max(5, min(11, int(tall / (9 * self.unit))))
        one, other = [(x, foot - tall)], []
        for side, points in ((-1, one), (1, other)):
            for i in range(1, tiers + 1):
                t = i / tiers
                out = half * t ** 0.85 * self.rng.uniform(0.85, 1.15)
                y = foot - tall * (1 - t) * 0.97 - tall * 0.02
                points += [(x + side * out, y + tall * 0.025), (x + side * out * 0.52, y - tall * 0.012)]
        self.canvas.polygon(one + other[::-1], colour)
        self.canvas.polygon([(x - tall * 0.016, foot - tall * 0.1), (x + tall * 0.016, foot - tall * 0.1),
                             (x + tall * 0.02, foot), (x - tall * 0.02, foot)], colour)

    def forest(self, horizon):
        layers = 5
        for i in range(layers):
            depth = 0.12 + 0.88 * i / (layers - 1)
            size = self.h * (0.13 + 0.07 * i)
            base = horizon + (self.h - horizon) * (0.18 + 0.86 * i / (layers - 1)) + size * 0.2
            self.pines(base, size, int(self.w / size * (7.5 - 0.8 * i)), depth)
            if i < layers - 1:
                self.mist(base, size * 0.9, 0.34 - 0.05 * i)
            self.tell(0.35 + 0.4 * i / layers)

    def mist(self, y, thick, strength):
        field = Noise(self.rng, self.w, self.h, 300 * self.unit, 60 * self.unit, 3)
        colour = mix(self.palette["sky"][-1], self.palette["light"], 0.25)
        first, last = max(0, int(y - thick)), min(self.h, int(y + thick))
        self.canvas.veil(field, colour, lambda n, row: strength * (1 - abs(row - y) / thick) * 2 * n if abs(row - y) < thick
                         else 0.0,
                         first, last)

    def city(self, horizon):
        rng = self.rng
        lit = mix(self.palette["accents"][0], (255, 226, 150), 0.6)
        for i in range(4):
            depth = 0.25 + 0.75 * i / 3
            x, base = -rng.uniform(0, 40), horizon + self.h * 0.05 * i
            tops, houses = [base] * self.w, []
            while x < self.w:
                wide = rng.uniform(24, 62) * self.unit * (0.7 + 0.2 * i)
                # Taller in the middle, as skylines are.
                middle = 0.6 + 0.55 * math.exp(-((x / self.w - 0.5) * 3) ** 2)
                tall = self.h * rng.uniform(0.1, 0.42) * (1.15 - 0.22 * i) * middle
                houses.append((x, wide, base - tall, rng.random()))
                x += wide + rng.choice((0, 0, rng.uniform(2, 16))) * self.unit
            for left, wide, top, kind in houses:
                for at in range(max(0, int(left)), min(self.w, int(left + wide))):
                    roof = top
                    if kind > 0.8:  # a spire
                        roof -= self.h * 0.09 * max(0.0, 1 - abs(at - left - wide / 2) / (wide * 0.07))
                    elif kind > 0.6:  # a setback
                        roof += self.h * 0.04 * (abs(at - left - wide / 2) > wide * 0.3)
                    tops[at] = min(tops[at], roof)
            self.canvas.curtain(tops, self.haze_over(tops, depth, base + 30))
            if i > 0:
                for house in houses:
                    self.windows(house, base, lit, 0.75 if self.dark else 0.3)
            self.tell(0.35 + 0.1 * i)

    def windows(self, house, base, lit, share):
        left, wide, top, _ = house
        size = 3.0 * self.unit
        across = int(wide / (size * 2.3))
        y = top + size * 4
        while y < base + self.h * 0.2:
            for i in range(across):
                if self.rng.random() < share * 0.5:
                    x = left + (wide - across * size * 2.3) / 2 + i * size * 2.3 + size * 0.6
                    alpha = self.rng.uniform(0.35, 0.95)
                    self.canvas.polygon([(x, y), (x + size, y), (x + size, y + size * 1.5), (x, y + size * 1.5)], lit, alpha)
            y += size * 3.1

    def dunes(self, horizon):
        share = 0.25 if self.dark else 0.75  # sand has its own colour, whatever the sky has
        far, near = mix(self.palette["far"], (240, 190, 120), share), mix(self.palette["near"], (150, 78, 36), share)
        for i in range(5):
            depth = 0.1 + 0.8 * i / 4
            base = horizon + (self.h - horizon) * (i / 5) ** 1.15
            tops = ridge(self.rng, self.w, base + self.h * 0.14, self.h * 0.26, self.w / (1.7 + 0.3 * i), 2, 0.14,
                         sharp=True)
            own = mix(far, near, depth * 0.75)
            self.canvas.curtain(tops, self.canvas.shade([mix(own, self.palette["light"], 0.35), own, mix(own, near, 0.4)],
                                                        min(tops), base + self.h * 0.3))
            self.dune_shadow(tops, mix(own, near, 0.75))

    def dune_shadow(self, tops, dark):
        """The side that the light does not reach."""
        for x in range(self.w - 1):
            slope = tops[x + 1] - tops[x]
            if slope > 0:
                tall = int(self.h * 0.3 * min(1.0, slope * 2.2))
                if tall > 2:
                    self.canvas.blend(x, math.ceil(tops[x]),
                                      [0.5 * min(1.0, slope * 3) * (1 - i / tall) for i in range(tall)], dark)

    def meadow(self, horizon):
        green = mix(self.palette["near"], (70, 130, 60), 0.35 if not self.dark else 0.12)
        haze = mix(green, self.palette["sky"][-1], 0.55)
        for i in range(3):
            tops = ridge(self.rng, self.w, horizon + (self.h - horizon) * i * 0.24 + 20 * self.unit, self.h * 0.09,
                         self.w / 1.7, 2, 0.3)
            top = mix(haze, green, 0.35 + 0.3 * i)
            self.canvas.curtain(tops,
                                self.canvas.shade([mix(top, self.palette["light"], 0.18), top,
                                                   mix(top, self.palette["near"], 0.55)], min(tops), self.h))
        self.blades(horizon + (self.h - horizon) * 0.5, green)

    def blades(self, top, green):
        rng = self.rng
        flowery = bool(self.motifs & {"flowers", "meadow", "petals"})
        for i in range(520):
            near = (i / 520) ** 0.8
            y = top + (self.h - top) * (near * 1.12)
            x, tall = rng.uniform(0, self.w), self.h * (0.02 + 0.075 * near) * rng.uniform(0.6, 1.3)
            lean = rng.uniform(-0.35, 0.35) * tall
            colour = mix(mix(green, self.palette["near"], rng.random() * 0.8), self.palette["light"], 0.16 * rng.random())
            self.canvas.stroke([(x, y), (x + lean * 0.35, y - tall * 0.55), (x + lean, y - tall)],
                               [3.2 * self.unit * (0.4 + near), 2 * self.unit * (0.4 + near), 0.3], colour, 0.85)
            if flowery and rng.random() < 0.32:
                self.bloom(x + lean, y - tall, self.unit * (2.4 + 6.5 * near), rng.choice(self.palette["accents"]))

    def bloom(self, x, y, size, colour):
        """A small flower."""
        turn = self.rng.uniform(0, 1)
        for i in range(5):
            a = turn + i * 1.2566
            self.canvas.polygon(ellipse(x + math.cos(a) * size * 0.6, y + math.sin(a) * size * 0.5, size * 0.55, size * 0.38,
                                        a, 12), colour, 0.92)
        self.canvas.polygon(ellipse(x, y, size * 0.3, size * 0.28, 0, 10), mix((255, 214, 90), WHITE, 0.2))

    def water(self, horizon, light_x):
        sky, near = self.palette["sky"], self.palette["near"]
        tint = mix(self.palette["far"], near, 0.45)
        self.canvas.mirror(horizon, tint, 0.36, max(1, int(13 * self.unit)))
        shade = [0.0 + 0.62 * ((y - horizon) / (self.h - horizon)) ** 1.4 for y in range(horizon, self.h)]
        for x in range(self.w):
            self.canvas.blend(x, horizon, shade, mix(near, sky[0], 0.35))
        self.canvas.glow(self.w / 2, horizon, self.w * 0.7, sky[-1], 0.12, 3)
        self.ripples(horizon, light_x)

    def ripples(self, horizon, light_x):
        rng, depth = self.rng, self.h - horizon
        light, dark = self.palette["light"], mix(self.palette["near"], self.palette["sky"][0], 0.4)
        for i in range(900):
            t = rng.random() ** 1.5
            y = horizon + 1 + depth * t
            size = self.unit * (5 + 64 * t) * rng.uniform(0.5, 1.3)
            x = rng.uniform(-20, self.w + 20)
            self.canvas.lens(x, y, size, self.unit * (0.5 + 2.1 * t), dark if i % 3
                             else mix(light, self.palette["sky"][-1], 0.5), 0.1 + 0.08 * t)
        for _ in range(420):  # the path of light
            t = rng.random() ** 1.25
            spread = self.w * (0.022 + 0.1 * t)
            self.canvas.lens(rng.gauss(light_x, spread), horizon + 1 + depth * t,
                             self.unit * (4 + 30 * t) * rng.uniform(0.4, 1.2),
                             self.unit * (0.5 + 1.5 * t), light, 0.62 * (1 - 0.55 * t))

    def surf(self):
        """Waves in front: crests with foam."""
        rng = self.rng
        foam = mix(WHITE, self.palette["sky"][-1], 0.35)
        for i in range(3):
            base = self.h * (0.86 + 0.075 * i)
            swell, shift = self.w / rng.uniform(1.6, 2.8), rng.uniform(0, 6.28)
            tops = [base - self.h * 0.016 * (math.sin(6.283 * x / swell + shift)
                                             + 0.4 * math.sin(15.1 * x / swell + 2 * shift)) for x in range(self.w)]
            body = mix(self.palette["far"], self.palette["near"], 0.45 + 0.25 * i)
            self.canvas.curtain(tops,
                                self.canvas.shade([mix(body, self.palette["light"], 0.28), body,
                                                   mix(body, self.palette["near"], 0.5)], min(tops), base + self.h * 0.12))
            for x, top in enumerate(tops):
                lace = abs(math.sin(x / self.unit / 23 + shift) * math.sin(x / self.unit / 9.1 + i))
                self.canvas.span(x, top, top + self.unit * (0.8 + 4 * lace), foam, 0.3)
                deep = int(self.h * 0.035 * (0.4 + lace))
                self.canvas.blend(x, math.ceil(top), [0.14 * (1 - k / deep) for k in range(deep)], foam)

    # -- What stands in it

    def figures(self, ground_y, horizon, has_water):
        unit, near = self.unit * self.h / self.w * 1.5, self.palette["near"]
        x = self.w * self.rng.choice((0.3, 0.68))
        if "boat" in self.motifs and has_water:
            self.boat(self.w * self.rng.uniform(0.3, 0.7), horizon + (self.h - horizon) * 0.3, 46 * unit)
        if "house" in self.motifs:
            self.house(self.w * 0.5, ground_y, 92 * unit)
        if "tree" in self.motifs:
            self.tree(self.w - x if "person" in self.motifs else x, ground_y + 10 * unit, 230 * unit)
        if "person" in self.motifs:
            self.person(x, ground_y, 165 * unit, near)
        if "cat" in self.motifs:
            together = "person" in self.motifs
            self.cat(x + 90 * unit * together, ground_y + 4 * unit, (75 if together else 150) * unit, near)
        if "balloon" in self.motifs:
            for i in range(3):
                self.balloon(self.w * (0.2 + 0.3 * i), self.h * self.rng.uniform(0.14, 0.36), (44 - 11 * i) * unit,
                             self.palette["accents"][i % 3])
        if "birds" in self.motifs or (not self.dark and self.rng.random() < 0.3):
            self.birds()

    def knoll(self):
        """A dark hill in front, for somebody to stand on. Returns its height in the middle."""
        top = self.h * 0.86
        tops = [top + self.h * 0.16 * (2 * abs(x / self.w - 0.5)) ** 2 + 2 * self.unit * math.sin(x / self.unit / 17)
                for x in range(self.w)]
        self.canvas.curtain(tops,
                            self.canvas.shade([mix(self.palette["near"], self.palette["far"], 0.12), self.palette["near"]],
                                              top, self.h))
        return top + self.h * 0.03

    def cat(self, x, y, size, colour):
        c = self.canvas
        tail = bend((x + size * 0.2, y - size * 0.05), (x + size * 0.95, y + size * 0.1), (x + size * 0.56, y - size * 0.5))
        c.stroke(tail, [size * (0.12 - 0.005 * i) for i in range(len(tail))], colour)
        c.polygon(ellipse(x, y - size * 0.3, size * 0.3, size * 0.36), colour)
        c.polygon(ellipse(x - size * 0.02, y - size * 0.08, size * 0.36, size * 0.12), colour)
        c.polygon(ellipse(x - size * 0.04, y - size * 0.72, size * 0.235, size * 0.2), colour)
        for side in (-1, 1):
            middle = x - size * 0.04 + side * size * 0.14
            c.polygon([(middle - size * 0.1, y - size * 0.82), (middle + side * size * 0.06, y - size * 1.05),
                       (middle + size * 0.1, y - size * 0.8)], colour)
            c.polygon(ellipse(middle - side * size * 0.045, y - size * 0.74, size * 0.035, size * 0.042),
                      mix(self.palette["accents"][0], (255, 226, 120), 0.5))

    def person(self, x, y, size, colour):
        c = self.canvas
        girl = "girl" in self.motifs
        c.polygon(ellipse(x, y - size * 0.9, size * 0.075, size * 0.088), colour)
        c.polygon([(x - size * 0.03, y - size * 0.84), (x + size * 0.03, y - size * 0.84), (x + size * 0.1, y - size * 0.76),
                   (x + size * 0.085, y - size * 0.48),
                   (x + size * (0.19 if girl else 0.1), y - size * 0.3),
                   (x - size * (0.19 if girl else 0.1), y - size * 0.3), (x - size * 0.085, y - size * 0.48),
                   (x - size * 0.1, y - size * 0.76)], colour)
        for side in (-1, 1):
            c.stroke([(x + side * size * 0.055, y - size * 0.36), (x + side * size * 0.065, y + size * 0.02)],
                     [size * 0.075, size * 0.05], colour)
            c.stroke([(x + side * size * 0.09, y - size * 0.74), (x + side * size * 0.15, y - size * 0.56),
                      (x + side * size * 0.13, y - size * 0.42)], [size * 0.05, size * 0.045, size * 0.03], colour)
        # Hair, or a scarf, in the wind.
        if girl:
            wind = bend((x, y - size * 0.92), (x + size * 0.16, y - size * 0.78), (x + size * 0.36, y - size * 0.88))
            c.stroke(wind, [size * 0.15 * (1 - i / 12.5) ** 0.7 for i in range(13)], colour)
        else:
            wind = bend((x, y - size * 0.8), (x + size * 0.2, y - size * 0.7), (x + size * 0.36, y - size * 0.82))
            c.stroke(wind, [size * (0.07 - 0.003 * i) for i in range(13)], self.palette["accents"][0])

    def house(self, x, y, size):
        c, near = self.canvas, self.palette["near"]
        c.polygon([(x - size * 0.5, y + 8), (x - size * 0.5, y - size * 0.5), (x + size * 0.5, y - size * 0.5),
                   (x + size * 0.5, y + 8)], mix(near, self.palette["far"], 0.12))
        c.polygon([(x + size * 0.22, y - size * 0.7), (x + size * 0.22, y - size * 1.02), (x + size * 0.35, y - size * 1.02),
                   (x + size * 0.35, y - size * 0.6)], near)
        c.polygon([(x - size * 0.64, y - size * 0.48), (x, y - size), (x + size * 0.64, y - size * 0.48)], near)
        lit = (255, 214, 130)
        for left in (-0.32, 0.1):
            c.glow(x + size * (left + 0.11), y - size * 0.26, size * 0.5, lit, 0.35, 2)
            c.polygon([(x + size * left, y - size * 0.36), (x + size * (left + 0.22), y - size * 0.36),
                       (x + size * (left + 0.22), y - size * 0.15), (x + size * left, y - size * 0.15)], lit)
        for i in range(7):
            c.glow(x + size * (0.3 + 0.05 * i * i * 0.4), y - size * (1.1 + 0.16 * i), size * (0.1 + 0.035 * i),
                   mix(self.palette["sky"][-1], WHITE, 0.3), 0.4 - 0.04 * i, 1.4)

    def tree(self, x, y, size):
        self.branch(x, y, -1.57, size * 0.3, size * 0.085, 6)
        crown = [mix(self.palette["near"], (60, 120, 60), 0.1 if self.dark else 0.4), self.palette["near"]]
        if self.palette_name in ("spring", "autumn", "rose"):
            crown = self.palette["accents"]
        for i in range(230):
            a, far = self.rng.uniform(0, 6.283), math.sqrt(self.rng.random())
            at = (x + math.cos(a) * far * size * 0.42, y - size * 0.74 + math.sin(a) * far * size * 0.28)
            leaf = mix(self.rng.choice(crown), self.palette["light"], 0.25 * max(0.0, -math.sin(a)) * far)
            self.canvas.polygon(ellipse(*at, size * self.rng.uniform(0.02, 0.06), size * self.rng.uniform(0.02, 0.045), a,
                                        10), leaf, 0.8)

    def branch(self, x, y, a, length, width, depth):
        tip = (x + math.cos(a) * length, y + math.sin(a) * length)
        self.canvas.stroke([(x, y), tip], [width, width * 0.68], mix(self.palette["near"], (60, 36, 24), 0.3))
        if depth > 1:
            for turn in (-1, 1):
                self.branch(*tip, a + turn * self.rng.uniform(0.25, 0.62), length * self.rng.uniform(0.66, 0.84),
                            width * 0.66, depth - 1)

    def boat(self, x, y, size):
        c = self.canvas
        for side, tall in ((1, 1.5), (-1, 1.2)):
            c.polygon([(x + side * size * 0.05, y - size * 0.12), (x + side * size * 0.05, y - size * tall),
                       (x + side * size * 0.75, y - size * 0.14)],
                      mix(self.palette["light"], self.palette["accents"][0], 0.12 if side > 0 else 0.45), 0.96)
        c.polygon([(x - size * 0.85, y - size * 0.1), (x + size * 0.9, y - size * 0.1), (x + size * 0.55, y + size * 0.18),
                   (x - size * 0.55, y + size * 0.18)], self.palette["near"])
        for i in range(9):
            c.lens(x + self.rng.uniform(-0.3, 0.3) * size, y + size * (0.25 + 0.13 * i), size * (0.75 - 0.055 * i),
                   size * 0.025, mix(self.palette["near"], self.palette["light"], 0.3 * (i % 3)), 0.4)

    def balloon(self, x, y, size, colour):
        c = self.canvas
        c.polygon(ellipse(x, y, size, size * 1.08), colour)
        for i, wide in enumerate((0.72, 0.36)):
            c.polygon(ellipse(x, y, size * wide, size * 1.08), mix(colour, WHITE if i else self.palette["near"], 0.35), 0.8)
        c.polygon([(x - size * 0.72, y + size * 0.72), (x + size * 0.72, y + size * 0.72), (x + size * 0.2, y + size * 1.42),
                   (x - size * 0.2, y + size * 1.42)], mix(colour, self.palette["near"], 0.25))
        c.polygon([(x - size * 0.18, y + size * 1.55), (x + size * 0.18, y + size * 1.55),
                   (x + size * 0.14, y + size * 1.85), (x - size * 0.14, y + size * 1.85)],
                   mix(self.palette["near"], (120, 80, 40), 0.5))

    def birds(self):
        rng = self.rng
        x, y = self.w * rng.uniform(0.25, 0.75), self.h * rng.uniform(0.16, 0.32)
        for _ in range(rng.randint(5, 9)):
            bx, by, s = x + rng.gauss(0, self.w * 0.09), y + rng.gauss(0, self.h * 0.05), self.unit * rng.uniform(7, 15)
            lift = rng.uniform(0.25, 0.6)
            self.canvas.stroke([(bx - s, by - s * lift), (bx - s * 0.45, by - s * lift * 0.95), (bx, by),
                                (bx + s * 0.45, by - s * lift * 0.95), (bx + s, by - s * lift)],
                               [0.4, s * 0.13, s * 0.2, s * 0.13, 0.4], self.palette["near"], 0.85)

    def falling(self):
        rng, unit = self.rng, self.unit
        if "snowfall" in self.motifs:
            for _ in range(420):
                size = unit * (0.8 + 2.6 * rng.random() ** 4)
                self.canvas.glow(rng.uniform(0, self.w), rng.uniform(0, self.h), size * 1.7, WHITE, 0.9, 1.2)
        if "rainfall" in self.motifs:
            for _ in range(520):
                x, y, long = rng.uniform(0, self.w), rng.uniform(-20, self.h), unit * rng.uniform(14, 34)
                self.canvas.stroke([(x, y), (x - long * 0.16, y + long)], [0.5 * unit, 1.1 * unit],
                                   mix(WHITE, self.palette["sky"][-1], 0.3), rng.uniform(0.15, 0.42))
        if "petals" in self.motifs:
            for _ in range(110):
                size, turn = unit * rng.uniform(2.5, 7), rng.uniform(0, 6.28)
                self.canvas.polygon(ellipse(rng.uniform(0, self.w), rng.uniform(0, self.h), size, size * 0.55, turn, 14),
                                    mix((255, 170, 195), WHITE, rng.random() * 0.7), 0.85)
        if "fireflies" in self.motifs:
            for _ in range(60):
                self.canvas.glow(rng.uniform(0, self.w), rng.uniform(self.h * 0.4, self.h), unit * rng.uniform(5, 14),
                                 (255, 240, 140), 0.9, 2.6)

    # -- Compositions

    def landscape(self):
        m, rng = self.motifs, self.rng
        water = bool(m & {"sea", "lake"})
        if not m & GROUND:
            m = self.motifs = m | {"meadow" if m & {"house", "tree", "flowers", "petals", "balloon"} else "mountains"}
        horizon = int(self.h * (rng.uniform(0.52, 0.6) if water else rng.uniform(0.58, 0.68)))
        self.sky(horizon)
        light_x = self.w * rng.choice((rng.uniform(0.22, 0.4), rng.uniform(0.6, 0.78)))
        if self.dark or m & {"stars", "moon"}:
            self.stars(horizon)
        if "aurora" in m:
            self.aurora(horizon)
        low = self.palette_name in ("sunset", "dawn", "fire")
        light_y = horizon * (rng.uniform(0.68, 0.84) if low else rng.uniform(0.24, 0.42))
        if "moon" in m or self.palette_name == "night":
            self.moon(light_x, light_y, self.h * rng.uniform(0.05, 0.08))
        elif "sun" in m or self.palette_name not in ("rain", "snow", "violet"):
            self.sun(light_x, light_y, self.h * rng.uniform(0.045, 0.075))
        self.tell(0.15)
        if "clouds" in m or self.palette_name not in ("night", "violet") or rng.random() < 0.4:
            self.clouds(horizon * 1.02, 0.75 if "clouds" in m or self.palette_name == "rain" else 0.5)
        self.tell(0.28)
        self.ground(horizon, light_x, water)
        self.tell(0.8)
        ground_y = self.knoll() if m & STANDING and not ("meadow" in m and not m & {"cat", "person"}) else self.h * 0.8
        self.figures(ground_y, horizon, water)
        self.falling()

    def ground(self, horizon, light_x, water):
        m = self.motifs
        if water:
            if "mountains" in m or "lake" in m:
                self.ridges(horizon, 3, 0.05, 0.62, 0.36, horizon + 2)
            elif self.rng.random() < 0.6:
                self.ridges(horizon, 1, 0.2, 0.2, 0.1, horizon + 2)
            if "city" in m:
                self.city(horizon - self.h * 0.1)
            if "forest" in m:
                self.pines(horizon + 4, self.h * 0.12, 60, 0.75)
            self.water(horizon, light_x)
            if "sea" in m and not m & {"lake", "city"}:
                self.surf()
            return
        if "mountains" in m:
            # Behind something else they stay pale, so that it stands out.
            behind = m & (STANDING | {"forest", "meadow", "city", "desert"})
            self.ridges(horizon, 3 if behind else 6, 0.02, 0.45 if behind else 0.95)
        for name, paint in (("desert", self.dunes), ("city", lambda y: self.city(y + self.h * 0.17)),
                            ("forest", self.forest), ("meadow", self.meadow)):
            if name in m:
                paint(horizon)

    def space(self):
        self.canvas.gradient([mix(self.palette["sky"][0], (2, 2, 10), 0.6), mix(self.palette["sky"][1], (2, 2, 12), 0.65),
                              (4, 3, 14)])
        for i, colour in enumerate(self.palette["accents"] + [self.palette["sky"][2]]):
            field = Noise(self.rng, self.w, self.h, 330 * self.unit, 260 * self.unit, 6)
            self.canvas.veil(field, mix(colour, self.palette["sky"][1], 0.35), lambda n, y: 0.62 * smooth((n - 0.46) / 0.3))
            self.tell(0.1 + 0.15 * i)
        self.stars(self.h, 2.2)
        x, y, r = self.w * self.rng.uniform(0.28,
                                            0.72), self.h * self.rng.uniform(0.4, 0.6), self.h * self.rng.uniform(0.16, 0.24)
        self.planet(x, y, r)

    def planet(self, x, y, r):
        lit = self.palette["accents"][self.rng.randrange(3)]
        self.canvas.glow(x, y, r * 1.9, lit, 0.45, 2.5)
        tilt = self.rng.uniform(-0.5, -0.2)
        self.ring(x, y, r, tilt, math.pi, 2 * math.pi)
        self.canvas.polygon(ellipse(x, y, r, r), mix(lit, (0, 0, 0), 0.15))
        for i in range(-6, 7):  # bands of cloud
            b = i / 6.5
            half = math.sqrt(1 - b * b)
            c, s = math.cos(tilt), math.sin(tilt)
            band = ellipse(x - s * b * r, y + c * b * r, r * half * 0.985, r * 0.055 * half * self.rng.uniform(0.5, 1.4),
                           tilt)
            self.canvas.polygon(band, mix(lit, self.rng.choice((WHITE, self.palette["sky"][1])), 0.5), 0.4)
        for i in range(26):  # the night side, softly
            t = i / 26
            self.canvas.polygon(crescent(x, y, r * 1.005, 0.72, 1.0 - 1.35 * t), (3, 3, 14), 0.075)
        self.ring(x, y, r, tilt, 0, math.pi)

    def ring(self, x, y, r, tilt, start, end):
        c, s = math.cos(tilt), math.sin(tilt)
        for i in range(9):
            far = r * (1.45 + 0.075 * i)
            points = [(far * math.cos(a), far * 0.24 * math.sin(a))
                      for a in (start + (end - start) * k / 48 for k in range(49))]
            self.canvas.stroke([(x + px * c - py * s, y + px * s + py * c) for px, py in points], [r * 0.06] * 49,
                               mix(self.palette["light"], self.palette["accents"][i % 3], 0.4), 0.22 + 0.28 * (i % 3 == 1))

    def flowers(self):
        rng = self.rng
        stops = self.palette["sky"]
        leafy = mix(self.palette["near"], (40, 90, 50), 0.5)
        self.canvas.gradient([mix(c, self.palette["near"], 0.2) for c in stops] + [mix(stops[-2], leafy, 0.6), leafy])
        self.bokeh(46, 0.32)
        self.tell(0.25)
        spots = [(0.5, 0.44, 0.27), (0.2, 0.6, 0.19), (0.8, 0.58, 0.2), (0.35, 0.82, 0.15), (0.66, 0.84, 0.15)]
        spots = [(fx + rng.uniform(-0.05, 0.05), fy + rng.uniform(-0.05, 0.05), size) for fx, fy,
                 size in spots[:rng.randint(3, 5)]]
        leaf = mix(mix(self.palette["near"], (40, 110, 60), 0.6), self.palette["sky"][1], 0.15)
        for fx, fy, size in spots:
            x, y = fx * self.w, fy * self.h
            bend = rng.uniform(-40, 40) * self.unit
            stem = [(x + bend * t * t, y + (self.h * 1.05 - y) * t) for t in (0, 0.25, 0.5, 0.75, 1)]
            self.canvas.stroke(stem, [6 * self.unit] * 5, leaf)
            for side in (-1, 1):
                lx, ly = stem[2]
                self.leaf(lx, ly, side, size * self.h * 0.9, leaf)
        for i, (fx, fy, size) in enumerate(sorted(spots, key=lambda spot: spot[2])):
            self.blossom(fx * self.w, fy * self.h, size * self.h, self.palette["accents"][(i + len(spots)) % 3]
                         if i < len(spots) - 1 else self.palette["accents"][0])
            self.tell(0.35 + 0.45 * i / len(spots))
        self.falling()

    def leaf(self, x, y, side, size, colour):
        turn = -0.5 * side if side > 0 else math.pi + 0.5
        tip = (x + math.cos(turn) * size, y + math.sin(turn) * size)
        mid = ((x + tip[0]) / 2, (y + tip[1]) / 2)
        nx, ny = -math.sin(turn) * size * 0.2, math.cos(turn) * size * 0.2
        one, other = (bend((x, y), (mid[0] + 2 * k * nx, mid[1] + 2 * k * ny), tip) for k in (1, -1))
        self.canvas.polygon(one + other[::-1], colour, 0.95)
        self.canvas.stroke([(x, y), tip], [1.6 * self.unit, 0.4], mix(colour, WHITE, 0.3), 0.6)

    def blossom(self, x, y, size, colour):
        """Rings of petals, the outer ones darker; each ring lies over the one outside it."""
        rng = self.rng
        dark = mix(colour, self.palette["near"], 0.5)
        rings = 6
        self.canvas.glow(x, y + size * 0.12, size * 1.35, self.palette["near"], 0.5, 2)
        for ring in range(rings):
            t = ring / (rings - 1)
            count, reach, turn = 9 - ring, size * (0.66 - 0.58 * t), rng.uniform(0, 6.28)
            for i in range(count):
                a = turn + 6.283 * i / count + rng.uniform(-0.1, 0.1)
                long, wide = size * (0.46 - 0.28 * t), size * (0.36 - 0.2 * t)
                px, py = x + math.cos(a) * reach, y + math.sin(a) * reach * 0.94
                tone = mix(mix(dark, colour, 0.4 + 0.6 * t), self.palette["light"],
                           0.06 + 0.08 * rng.random() - 0.06 * math.sin(a))
                self.canvas.polygon(ellipse(px, py, long, wide, a, 36), mix(tone, self.palette["near"], 0.42), 0.5)
                self.canvas.polygon(ellipse(px - math.cos(a) * size * 0.012, py - math.sin(a) * size * 0.012 - size * 0.008,
                                            long * 0.965, wide * 0.95, a, 36), tone)
                self.canvas.polygon(ellipse(px + math.cos(a) * long * 0.3, py + math.sin(a) * long * 0.3, long * 0.55,
                                            wide * 0.66, a, 28), mix(tone, WHITE, 0.3), 0.22)
        self.canvas.glow(x, y, size * 0.3, mix(dark, self.palette["near"], 0.3), 0.7, 1.5)

    def bokeh(self, count, alpha):
        for _ in range(count):
            size = self.unit * self.rng.uniform(8, 46)
            x, y = self.rng.uniform(0, self.w), self.rng.uniform(0, self.h)
            colour = mix(self.rng.choice(self.palette["accents"]), self.palette["light"], self.rng.random() * 0.6)
            self.canvas.polygon(ellipse(x, y, size, size), colour, alpha * self.rng.uniform(0.25, 0.8))
            self.canvas.polygon(ellipse(x, y, size * 0.86, size * 0.86), colour, alpha * 0.2)

    def flow(self):
        """Threads that follow a current."""
        rng, unit = self.rng, self.unit
        self.canvas.gradient([mix(c, self.palette["near"], 0.62) for c in self.palette["sky"]])
        rising = self.palette_name == "fire"
        field = Noise(rng, self.w, self.h, 300 * unit, 300 * unit, 2)
        turn = -math.pi / 2 if rising else rng.uniform(0, 6.28)
        swing = 3.2 if rising else rng.uniform(6, 10)
        if rising:
            self.canvas.glow(self.w / 2, self.h, self.h * 0.95, self.palette["accents"][1], 0.8, 1.5)
        colours = self.palette["accents"] + self.palette["sky"][1:] + [self.palette["light"]]
        lines = 1150
        for i in range(lines):
            x, y = rng.uniform(-0.05, 1.05) * self.w, (rng.uniform(0.55, 1.1) if rising
                                                       else rng.uniform(-0.05, 1.05)) * self.h
            tint = thread_colour(field.at(x, y), colours, rng)
            points = []
            for _ in range(rng.randint(12, 34)):
                points.append((x, y))
                a = turn + (field.at(x, y) - 0.5) * swing
                x, y = x + math.cos(a) * 7 * unit, y + math.sin(a) * 7 * unit
            width = unit * rng.uniform(0.8, 5.5) * (1.3 - 0.8 * i / lines)
            widths = [0.2 + width * math.sin(math.pi * k / (len(points) - 1)) for k in range(len(points))]
            self.canvas.stroke(points, widths, tint, rng.uniform(0.35, 0.85))
            if i % 50 == 0:
                self.tell(0.1 + 0.75 * i / lines)

    def circles(self):
        rng = self.rng
        self.canvas.gradient(self.palette["sky"])
        self.canvas.veil(Noise(rng, self.w, self.h, 300 * self.unit, 300 * self.unit, 4), self.palette["sky"][1], lambda n,
                         y: 0.5 * smooth((n - 0.4) / 0.3))
        for i in range(17):
            size = self.h * (0.36 * (1 - i / 17) ** 1.6 + 0.03)
            x, y = rng.gauss(0.5, 0.26) * self.w, rng.gauss(0.5, 0.24) * self.h
            colour = rng.choice(self.palette["accents"] + [self.palette["light"], self.palette["near"], self.palette["far"]])
            self.canvas.glow(x + size * 0.1, y + size * 0.16, size * 1.35, self.palette["near"], 0.4, 1.6)
            kind = rng.random()
            if kind < 0.65:
                self.canvas.polygon(ellipse(x, y, size, size), colour, 0.86)
                for k in range(14):  # round, by light from above
                    t = k / 14
                    self.canvas.polygon(ellipse(x - size * 0.28 * t, y - size * 0.32 * t, size * (1 - t) * 0.98,
                                                size * (1 - t) * 0.98), mix(colour, WHITE, 0.6), 0.055)
            else:
                for k in range(4):
                    r = size * (1 - 0.23 * k)
                    self.canvas.polygon(ellipse(x, y, r, r) , mix(colour, self.palette["sky"][k % len(self.palette["sky"])],
                                                                  0.75 * (k % 2)), 0.9)
            self.tell(0.2 + 0.6 * i / 17)
        self.bokeh(22, 0.5)


def thread_colour(value, colours, rng):
    """Neighbouring threads have neighbouring colours."""
    at = (value * 1.7 + rng.gauss(0, 0.06)) % 1
    return ramp(colours, at)


def bend(a, b, c):
    """A curve from the first point to the last, drawn towards the second."""
    return [tuple((1 - t) ** 2 * p + 2 * t * (1 - t) * q + t * t * r for p, q, r in zip(a, b, c))
            for t in (i / 12 for i in range(13))]


def crescent(x, y, r, turn, edge):
    """The part of a disc beyond an edge that is itself half an ellipse; `edge` 1 is nothing and -1 all of it."""
    c, s = math.cos(turn), math.sin(turn)
    outer = [(r * math.cos(a), r * math.sin(a)) for a in (-math.pi / 2 + math.pi * i / 40 for i in range(41))]
    inner = [(edge * r * math.cos(a), r * math.sin(a)) for a in (math.pi / 2 - math.pi * i / 40 for i in range(41))]
    return [(x + px * c - py * s, y + px * s + py * c) for px, py in outer + inner]
