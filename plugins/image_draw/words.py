"""What a prompt asks for: which of its words, Chinese or English, stand for something that can be drawn."""

import colorsys
import re

# name: English words, Chinese words. Of the palettes the first that fits counts, so the time of day stands before places.
PALETTE_WORDS = {
    "violet": ("aurora galaxy nebula space universe dream dreamy magic neon cyberpunk", "极光 银河 星云 宇宙 太空 梦 魔法 霓虹 赛博"),
    "night": ("night midnight moon moonlight moonlit star stars starry", "夜 月 星"),
    "sunset": ("sunset sundown dusk evening twilight", "夕阳 日落 黄昏 傍晚 晚霞 落日 暮"),
    "dawn": ("dawn sunrise morning daybreak", "日出 黎明 清晨 早晨 朝阳 晨"),
    "fire": ("fire flame flames lava volcano inferno dragon", "火 焰 熔岩 龙"),
    "snow": ("snow snowy winter ice icy frost christmas", "雪 冬 冰 霜 圣诞"),
    "rain": ("rain rainy storm fog foggy mist misty cloudy", "雨 雾 暴风 阴天 烟"),
    "autumn": ("autumn fall maple harvest", "秋 枫 丰收"),
    "rose": ("rose roses love romantic valentine pink", "玫瑰 爱 浪漫 粉"),
    "spring": ("spring sakura cherry blossom blossoms girl 1girl anime", "春 樱 桃花 少女 女孩"),
    "gold": ("desert dune dunes sand gold golden", "沙漠 沙丘 沙 金"),
    "sea": ("sea ocean beach wave waves island coast lake river boat", "海 洋 浪 湖 河 岛 江 船"),
    "forest": ("forest forests tree trees wood woods jungle bamboo grass garden", "森林 树 林 竹 草 园"),
    "day": ("day sunny sun sky summer blue mountain mountains hill hills bird birds city house", "白天 晴 太阳 天空 夏 山 鸟 城 家"),
}
COLOUR_WORDS = {0.0: ("red crimson", "红"), 0.08: ("orange", "橙"), 0.14: ("yellow", "黄色"), 0.36: ("green emerald", "绿"),
                0.5: ("cyan teal turquoise", "青色"), 0.6: ("blue azure", "蓝"), 0.76: ("purple violet", "紫")}
MOTIF_WORDS = {
    "mountains": ("mountain mountains hill hills peak peaks valley volcano landscape", "山 峰 岭 谷 风景"),
    "sea": ("sea ocean beach wave waves coast island boat ship sail sailing", "海 洋 浪 岛 船 帆"),
    "lake": ("lake river pond reflection water", "湖 河 江 池 溪 倒影 水"),
    "forest": ("forest forests wood woods pine pines jungle", "森林 树林 松 丛林"),
    "city": ("city town skyline street building buildings skyscraper tokyo shanghai york cyberpunk", "城 都市 街 楼 上海 北京 东京"),
    "desert": ("desert dune dunes sand", "沙漠 沙丘"),
    "meadow": ("meadow field fields grass grassland prairie garden", "草 田 原野 花园"),
    "flowers": ("flower flowers rose roses tulip lotus sunflower bouquet blossom blossoms", "花 玫瑰 荷 莲 牡丹 郁金香"),
    "space": ("space galaxy nebula universe planet cosmos cosmic", "宇宙 太空 银河 星云 行星 星球"),
    "flow": ("abstract flow dream wind music fire flame flames energy chaos", "抽象 流动 梦 风暴 音乐 火焰 烈火 能量"),
    "circles": ("circle circles bubble bubbles geometric bokeh lantern lanterns balloons", "圆 泡 几何 灯笼"),
    "aurora": ("aurora", "极光"),
    "moon": ("moon moonlight moonlit", "月"),
    "stars": ("star stars starry night", "星 夜"),
    "sun": ("sun sunny sunset sunrise", "太阳 夕阳 日落 日出 朝阳 落日"),
    "clouds": ("cloud clouds cloudy", "云"),
    "snowfall": ("snow snowy snowing winter christmas", "雪"),
    "rainfall": ("rain rainy raining storm", "雨"),
    "petals": ("sakura petal petals cherry", "樱 花瓣 桃花"),
    "fireflies": ("firefly fireflies magic fairy", "萤 魔法 精灵"),
    "cat": ("cat cats kitten kitty", "猫"),
    "person": ("person man woman girl 1girl girls lady princess boy 1boy traveler traveller child people he she",
               "人 女 男 少年 孩子 姑娘 公主"),
    "girl": ("girl 1girl girls woman lady princess", "女 姑娘 公主"),
    "house": ("house home cottage cabin hut farm", "房 屋 家 村"),
    "boat": ("boat ship sail sailing yacht", "船 帆 舟"),
    "birds": ("bird birds seagull seagulls goose geese crane", "鸟 雁 鹤 鸥 燕"),
    "balloon": ("balloon balloons", "热气球 气球"),
    "tree": ("tree oak willow", "树"),
}
NOT_MEANT = ("上海", "海报", "花火", "人工", "火车", "银河", "星期", "月份")  # these have a character of another motif in them
# The sky from the top to the horizon, its light, what is far, what is near, and what is bright.
PALETTES = {
    "night": ("050a1f 0d1b40 1d3566 41629a", "f6f2dc", "2c4474", "04070f", "f2d58a 8fb3e8 d8e4ff"),
    "sunset": ("2b1b4d 7a2f6b e0586a ff9a56 ffd98a", "fff1c4", "b1506f", "1d1030", "ffcf70 ff6f61 c94f7c"),
    "dawn": ("3f5d8f 8fa3c8 f3c6c0 ffe3bd", "fff8e4", "a3a6c6", "2c3454", "ffd9a0 f3a6a6 9fb8e0"),
    "violet": ("0e0a2e 34246e 7d5bc0 e0a9e6", "fdeaff", "5d4aa0", "0b0720", "ff8ad8 7df0ff ffd36b"),
    "fire": ("180404 5a0f0a c2330f ff8a1e ffe08a", "fff0b8", "93270f", "150303", "ffd24a ff6a1a c21d0a"),
    "snow": ("8aa6c9 b9cde3 e1ebf5 fbfdff", "ffffff", "b4c6dc", "3f5473", "ffffff cfe0f2 e8b4b8"),
    "rain": ("3a4754 5f6f7c 8f9ca5 bcc5c9", "e8eef0", "84929c", "1e272e", "a9c0cc 6f8a99 d0b98a"),
    "autumn": ("b9683a e3a45f f6d89c fff3d6", "fffbe8", "cf8f52", "451b10", "d9482b f2a33a 8c2f1b"),
    "rose": ("4f1a40 a8436f f29bb2 ffe3df", "fff3ee", "b45a82", "2c0d22", "e8315b ff7f9c ffc2cc"),
    "spring": ("84c3ec c4e4f5 ffe1ec fff7f2", "fffdf2", "b9cfe3", "3d5a55", "ff9fbe ffd0dd ffffff"),
    "gold": ("3f86b8 9cc7d3 f4dca6 ffe9bd", "fffbe0", "e0b070", "7a3f1c", "f0b84f d98032 fff0c0"),
    "sea": ("1d6fa5 4fb0cf a5e0e0 f8f2d4", "fffce8", "5aa0b4", "0b3546", "ffffff ffd07a 2f8fae"),
    "forest": ("6faa93 aed2ae dfeec6 faf7dc", "fffde6", "86b59a", "0d291e", "f2d16b c4e08a ffffff"),
    "day": ("2a78cc 69b0ec bce1fb f1faff", "fffdf0", "90b5d6", "1b4350", "ffd25f ff8f6b ffffff"),
}


NATURAL = ("sunset", "dawn", "day", "violet", "spring")


def rgb(word):
    return tuple(int(word[i:i + 2], 16) for i in (0, 2, 4))


def colour(hue, lightness, saturation):
    return tuple(255 * c for c in colorsys.hls_to_rgb(hue % 1, lightness, saturation))


def turned(c, by):
    """The same colour a little further round the wheel."""
    h, l, s = colorsys.rgb_to_hls(*(v / 255 for v in c))
    return colour(h + by, l, s)


def named_palette(name):
    sky, light, far, near, accents = PALETTES[name]
    return {"sky": [rgb(c) for c in sky.split()], "light": rgb(light), "far": rgb(far), "near": rgb(near),
            "accents": [rgb(c) for c in accents.split()]}


def palette_of_hue(hue, rng):
    """Neighbours on the wheel for the sky, and one colour from across it."""
    way = rng.choice((-1, 1)) * rng.uniform(0.06, 0.14)
    sky = [colour(hue + way * i, l, 0.62) for i, l in enumerate((0.14, 0.32, 0.56, 0.8))]
    return {"sky": sky, "light": colour(hue + 3 * way, 0.94, 0.8), "far": colour(hue + way, 0.45, 0.4),
            "near": colour(hue, 0.08, 0.5),
            "accents": [colour(hue + 0.5, 0.62, 0.75), colour(hue + 3 * way, 0.7, 0.8), colour(hue - way, 0.5, 0.7)]}


class Words:
    def __init__(self, prompt):
        self.text = prompt.lower()
        self.english = set(re.findall(r"[a-z0-9]+", self.text))
        self.chinese = self.text
        for word in NOT_MEANT:
            self.chinese = self.chinese.replace(word, " ")

    def has(self, english, chinese):
        # A name of several characters may be one of those that are not meant for others.
        return bool(self.english & set(english.split())) or any(
            word in (self.text if len(word) > 1 else self.chinese) for word in chinese.split())

    def first(self, table):
        return next((name for name, words in table.items() if self.has(*words)), None)

    def all(self, table):
        return {name for name, words in table.items() if self.has(*words)}


def read(prompt, rng):
    """The palette, its name, and the motifs that the prompt names."""
    words = Words(prompt)
    motifs = words.all(MOTIF_WORDS)
    hue, name = words.first(COLOUR_WORDS), words.first(PALETTE_WORDS)
    if hue is not None and name in (None, "day"):
        return palette_of_hue(hue, rng), "colour", motifs
    if name is None and motifs:
        name = rng.choice(NATURAL)  # a place has a sky that one has seen
    if name:
        palette = named_palette(name)
        by = rng.uniform(-0.015, 0.015)  # so that two sunsets are not the same one
        palette = {key: [turned(c, by) for c in value] if isinstance(value, list) else turned(value, by)
                   for key, value in palette.items()}
        if hue is not None:
            palette["accents"] = [colour(hue, 0.45, 0.8), colour(hue + 0.03, 0.6, 0.8), colour(hue - 0.02, 0.36, 0.75)]
        return palette, name, motifs
    return palette_of_hue(rng.random(), rng), "own", motifs
