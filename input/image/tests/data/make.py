"""Writes what tests/pillow.rs holds isovec-image to: pictures in every format, and what Pillow and transformers make of them.

    python -m venv venv && venv/bin/pip install "pillow==12.3.0" "transformers==5.24.0" numpy && venv/bin/python make.py

`pictures.bin` has the files one after the other, `pictures.json` where each lies and the SHA-256 of its pixels,
`resized.json` those of resized pictures, and `processed.json` those of `pixel_values`.

Torchvision's arithmetic on bytes is written here a second time, in numpy, from its description: its wheel is too large to
ask for. Everything else is Pillow's and transformers' own.
"""

import hashlib
import io
import json
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import PIL
from PIL import Image, ImageOps
from transformers import (
    BitImageProcessorPil,
    CLIPImageProcessorPil,
    ConvNextImageProcessorPil,
    DeiTImageProcessorPil,
    EfficientNetImageProcessorPil,
    MobileNetV1ImageProcessorPil,
    MobileNetV2ImageProcessorPil,
    SiglipImageProcessorPil,
    ViTImageProcessorPil,
)
from transformers.image_transforms import convert_to_rgb

# Pillow 13 resizes the height first where it shrinks more.
assert PIL.__version__.startswith("12."), PIL.__version__

HERE = Path(__file__).parent
SIZES = [(1, 1), (2, 3), (7, 5), (8, 8), (16, 16), (17, 33), (31, 9), (48, 40), (33, 65)]
FEW = [(1, 1), (7, 5), (17, 33), (48, 40)]


def pixels(width, height, channels, seed, noise=24):
    """A slope, a circle and noise: smooth parts, an edge, and nothing that repeats."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(float)
    slope = 255 * (x / max(width, 2) + y / max(height, 2)) / 2
    inside = (x - width / 2) ** 2 + (y - height / 3) ** 2 < (min(width, height) / 3) ** 2
    planes = []
    for channel in range(channels):
        plane = np.roll(slope, channel * 3, axis=1) if channel % 2 == 0 else 255 - slope
        plane = np.where(inside, 255 * (channel + 1) / 5, plane)
        planes.append(plane + random.normal(0, noise, plane.shape))
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def picture(width, height, mode, seed, noise=24):
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    array = pixels(width, height, channels, seed, noise)
    return Image.fromarray(array[..., 0] if channels == 1 else array, mode)


def saved(image, form, **how):
    to = io.BytesIO()
    image.save(to, form, **how)
    return to.getvalue()


# PNG that Pillow does not write: every depth, interlaced, color keys.

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def scanlines(samples, depth):
    """Rows with all five filters in turn. `samples` is height x width x channels."""
    height, width, channels = samples.shape
    if depth == 16:
        rows = samples.astype(">u2").tobytes()
        size = width * channels * 2
        rows = [rows[at * size:(at + 1) * size] for at in range(height)]
    elif depth == 8:
        rows = [row.astype(np.uint8).tobytes() for row in samples]
    else:
        rows = []
        for row in samples[..., 0]:
            bits = "".join(format(int(sample), f"0{depth}b") for sample in row)
            bits += "0" * (-len(bits) % 8)
            rows.append(bytes(int(bits[at:at + 8], 2) for at in range(0, len(bits), 8)))
    step = max(1, channels * depth // 8)
    out, above = b"", None
    for number, row in enumerate(rows):
        above = above or bytes(len(row))
        left = bytes(step) + row[:-step]
        corner = bytes(step) + above[:-step]
        left, corner = left[:len(row)], corner[:len(row)]
        kind = number % 5
        guess = [
            lambda a, b, c: 0,
            lambda a, b, c: a,
            lambda a, b, c: b,
            lambda a, b, c: (a + b) // 2,
            lambda a, b, c: min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2],
        ][kind]
        out += bytes([kind]) + bytes((s - guess(a, b, c)) % 256 for s, a, b, c in zip(row, left, above, corner))
        above = row
    return out


def png(samples, depth, color, interlaced=False, between=b"", after=b""):
    height, width, _ = samples.shape
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        parts = [samples[y::down, x::right] for x, y, right, down in passes]
        data = b"".join(scanlines(part, depth) for part in parts if part.size)
    else:
        data = scanlines(samples, depth)
    body = chunk(b"IHDR", header) + between + chunk(b"IDAT", zlib.compress(data)) + after
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


def palette(count, seed):
    return np.random.default_rng(seed).integers(0, 256, (count, 3), dtype=np.uint8)


def exif(orientation, order=">"):
    head = b"MM" if order == ">" else b"II"
    entries = struct.pack(order + "HHIHH", 274, 3, 1, orientation, 0)
    return head + struct.pack(order + "HIH", 42, 8, 1) + entries + bytes(4)


def pictures():
    for number, (width, height) in enumerate(SIZES):
        name = f"{width}x{height}"
        rgb, gray = picture(width, height, "RGB", number), picture(width, height, "L", number)
        for sampling, label in enumerate(["444", "422", "420"]):
            for quality in [20, 75, 96]:
                for progressive in [False, True]:
                    kind = "progressive" if progressive else "baseline"
                    yield f"jpeg/{label}-{quality}-{kind}-{name}", saved(
                        rgb, "JPEG", quality=quality, subsampling=sampling, progressive=progressive
                    )
        for quality in [30, 90]:
            for progressive in [False, True]:
                kind = "progressive" if progressive else "baseline"
                yield f"jpeg/gray-{quality}-{kind}-{name}", saved(
                    gray, "JPEG", quality=quality, progressive=progressive
                )
        for quality in [15, 60, 90]:
            yield f"webp/lossy-{quality}-{name}", saved(rgb, "WEBP", quality=quality, method=quality // 20)
            yield f"webp/alpha-{quality}-{name}", saved(
                picture(width, height, "RGBA", number), "WEBP", quality=quality, alpha_quality=quality
            )
        yield f"webp/lossless-{name}", saved(rgb, "WEBP", lossless=True)
        yield f"webp/lossless-alpha-{name}", saved(
            picture(width, height, "RGBA", number), "WEBP", lossless=True, exact=True
        )
        for mode in ["L", "LA", "RGB", "RGBA"]:
            yield f"png/{mode}-{name}", saved(picture(width, height, mode, number), "PNG")
        yield f"png/bits-{name}", saved(gray.convert("1"), "PNG")
        yield f"png/palette-{name}", saved(rgb.quantize(200), "PNG")
        yield f"gif/palette-{name}", saved(rgb.quantize(100), "GIF")
        yield f"gif/gray-{name}", saved(gray, "GIF")
        yield f"gif/few-{name}", saved(rgb.quantize(3), "GIF", interlace=0)
    for number, (width, height) in enumerate(FEW):
        name = f"{width}x{height}"
        rgb = picture(width, height, "RGB", number + 40)
        yield f"jpeg/cmyk-{name}", saved(picture(width, height, "CMYK", number), "JPEG", quality=80)
        yield f"jpeg/rgb-{name}", saved(rgb, "JPEG", keep_rgb=True)
        yield f"jpeg/restarts-{name}", saved(rgb, "JPEG", restart_marker_blocks=2)
        yield f"jpeg/restarts-rows-{name}", saved(rgb, "JPEG", restart_marker_rows=1, subsampling=1)
        yield f"jpeg/optimized-{name}", saved(rgb, "JPEG", optimize=True)
        for interlaced in [False, True]:
            kind = "interlaced" if interlaced else "plain"
            random = np.random.default_rng(number)
            for depth in [1, 2, 4, 8, 16]:
                gray = random.integers(0, 1 << depth, (height, width, 1))
                yield f"png/gray{depth}-{kind}-{name}", png(gray, depth, 0, interlaced)
                if depth < 16:
                    count = min(1 << depth, 200)
                    colors = chunk(b"PLTE", palette(count, number).tobytes())
                    alpha = chunk(b"tRNS", bytes(range(0, min(count, 40) * 5, 5)))
                    indices = random.integers(0, count, (height, width, 1))
                    yield f"png/palette{depth}-{kind}-{name}", png(indices, depth, 3, interlaced, colors)
                    yield f"png/palette{depth}-alpha-{kind}-{name}", png(indices, depth, 3, interlaced, colors + alpha)
            for color, channels in [(2, 3), (4, 2), (6, 4)]:
                samples = random.integers(0, 1 << 16, (height, width, channels))
                yield f"png/sixteen{channels}-{kind}-{name}", png(samples, 16, color, interlaced)
        low = np.random.default_rng(number).integers(0, 512, (height, width, 1))
        yield f"png/gray16-dark-{name}", png(low, 16, 0)
        few = np.random.default_rng(number).integers(0, 4, (height, width, 3)) * 60
        yield f"png/key-rgb-{name}", png(few, 8, 2, between=chunk(b"tRNS", struct.pack(">HHH", *few[0, 0])))
        yield f"png/key-gray-{name}", png(few[..., :1], 8, 0, between=chunk(b"tRNS", struct.pack(">H", few[0, 0, 0])))
        quantized = rgb.quantize(30)
        yield f"gif/transparent-{name}", saved(quantized, "GIF", transparency=7)
        yield f"gif/interlaced-{name}", saved(quantized, "GIF", interlace=1)
        for kind, more in [("within", {}), ("within-transparent", {"transparency": 7})]:
            frame = bytearray(saved(quantized, "GIF", **more))
            frame[6:10] = struct.pack("<HH", width + 5, height + 3)
            at = frame.index(b"\x2c", 13 + 3 * (2 << (frame[10] & 7)))
            frame[at + 1:at + 5] = struct.pack("<HH", 2, 1)
            yield f"gif/{kind}-{name}", bytes(frame)
        frames = [picture(width, height, "RGBA", number + at) for at in range(3)]
        yield f"webp/animated-{name}", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
        yield f"webp/animated-lossy-{name}", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:])
        yield f"png/animated-{name}", saved(frames[0], "PNG", save_all=True, append_images=frames[1:])
        yield f"gif/animated-{name}", saved(
            frames[0].convert("RGB"), "GIF", save_all=True, append_images=[frame.convert("RGB") for frame in frames[1:]]
        )
    wide = picture(19, 11, "RGB", 77)
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    for orientation in range(10):
        for order in "<>":
            tag = exif(orientation, order)
            end = "little" if order == "<" else "big"
            yield f"jpeg/turn{orientation}-{end}", saved(wide, "JPEG", exif=b"Exif\0\0" + tag)
        yield f"png/turn{orientation}", saved(wide, "PNG", exif=tag)
        yield f"webp/turn{orientation}", saved(wide, "WEBP", exif=tag)
    yield "jpeg/turn-xmp", saved(wide, "JPEG", xmp=xmp)
    yield "webp/turn-xmp", saved(wide, "WEBP", xmp=xmp)
    text = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp)
    yield "png/turn-xmp", png(np.asarray(wide), 8, 2, between=text)
    yield "png/turn-late", png(np.asarray(wide), 8, 2, after=chunk(b"eXIf", exif(8)))
    profile = bytes(np.random.default_rng(5).integers(0, 256, 600, dtype=np.uint8))
    yield "jpeg/profile", saved(wide, "JPEG", icc_profile=profile)
    yield "png/profile", saved(wide, "PNG", icc_profile=profile)
    yield "webp/profile", saved(wide, "WEBP", icc_profile=profile)
    yield "png/gamma", png(np.asarray(wide), 8, 2, between=chunk(b"gAMA", struct.pack(">I", 45455)))
    # A progressive file without its last scans.
    whole = saved(picture(64, 48, "RGB", 9), "JPEG", progressive=True, quality=90)
    scans = [at for at in range(len(whole)) if whole[at:at + 2] == b"\xff\xda"]
    for count in range(1, len(scans)):
        yield f"jpeg/scans{count}", whole[:scans[count]] + b"\xff\xd9"
    for width, height in [(100, 7), (96, 130), (200, 150)]:
        yield f"resize/{width}x{height}", saved(picture(width, height, "RGB", width, noise=60), "PNG")
    yield "resize/gray", saved(picture(53, 47, "L", 3, noise=60), "PNG")
    # Only black and white: what overshoots has to end at 0 and 255.
    checks = Image.fromarray(np.random.default_rng(1).integers(0, 2, (41, 37, 3), dtype=np.uint8) * 255)
    yield "resize/checks", saved(checks, "PNG")


def sha(data):
    return hashlib.sha256(data).hexdigest()[:32]


def plain(image):
    """The picture with channels that isovec-image has: palettes looked up, keys and palettes' alpha as a channel."""
    see_through = image.info.get("transparency") is not None
    if image.mode == "1" or image.mode == "I;16":
        gray = image.convert("L")
        assert gray.convert("RGB").tobytes() == image.convert("RGB").tobytes()
        return gray
    if image.mode == "P" or image.format == "GIF":
        return image.convert("RGBA" if see_through else "RGB")
    if image.mode in ("CMYK", "RGBX"):
        return image.convert("RGB")
    if image.format == "PNG" and image.mode == "RGBA" and image.tile_mode == "LA;16B":
        return image.convert("LA")
    if see_through:
        return image.convert({"L": "LA", "RGB": "RGBA"}[image.mode])
    assert image.mode in ("L", "LA", "RGB", "RGBA"), image.mode
    return image


def about(name, data, at):
    image = Image.open(io.BytesIO(data))
    # Pillow makes RGBA of gray with alpha in 16 bits.
    tile = image.tile[0] if image.tile else None
    image.tile_mode = tile.args if tile else None
    image.load()
    stored = plain(image)
    upright = ImageOps.exif_transpose(image)
    rgb = upright.convert("RGB")
    entry = {
        "name": name,
        "at": at,
        "bytes": len(data),
        "size": image.size,
        "channels": len(stored.getbands()),
        "pixels": sha(stored.tobytes()),
        "upright": upright.size,
        "rgb": sha(rgb.tobytes()),
    }
    if "A" in stored.getbands():
        entry["white"] = sha(np.ascontiguousarray(convert_to_rgb(upright, return_numpy=True)).tobytes())
    return entry, rgb


def torchvision(image, width, height, resample):
    """Bytes as torchvision resizes them with antialiasing: weights of at most 16 bits, width first."""
    array = np.asarray(image)
    array = array[..., None] if array.ndim == 2 else array
    for axis, size in [(1, width), (0, height)]:
        length = array.shape[axis]
        if length == size:
            continue
        scale = length / size
        if resample == 0:
            places = [min(int(np.float32((at + np.float32(0.5)) * np.float32(scale))), length - 1) for at in range(size)]
            array = np.take(array, places, axis)
            continue
        support = {2: 1.0, 3: 2.0}[resample] * max(scale, 1.0)
        rows = np.zeros((size, length))
        for at in range(size):
            center = scale * (at + 0.5)
            low, high = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), length)
            distance = np.abs((np.arange(low, high) - center + 0.5) / max(scale, 1.0))
            if resample == 2:
                weights = np.where(distance < 1, 1 - distance, 0)
            else:
                a = -0.5
                near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
                far = (((distance - 5) * distance + 8) * distance - 4) * a
                weights = np.where(distance < 1, near, np.where(distance < 2, far, 0))
            rows[at, low:high] = weights / weights.sum()
        bits = 0
        while bits < 22 and int(0.5 + rows.max() * (1 << (bits + 1))) < 1 << 15:
            bits += 1
        fixed = np.trunc(rows * (1 << bits) + np.copysign(0.5, rows)).astype(np.int64)
        sums = np.tensordot(fixed, array.astype(np.int64), axes=(1, axis)) + (1 << (bits - 1))
        array = np.moveaxis(np.clip(sums >> bits, 0, 255).astype(np.uint8), 0, axis)
    return array


def resized(sources):
    wanted = [
        ("resize/200x150", [(224, 224), (64, 64), (50, 37), (199, 150), (200, 149), (1, 1), (400, 30)]),
        ("resize/96x130", [(224, 303), (96, 32), (95, 129), (33, 260), (13, 7)]),
        ("resize/100x7", [(224, 15), (99, 8), (10, 50), (3, 3)]),
        ("resize/checks", [(37, 82), (74, 41), (100, 100), (20, 20), (36, 40)]),
        ("resize/gray", [(224, 224), (26, 23), (52, 48), (10, 100)]),
        ("png/RGB-1x1", [(5, 9), (224, 224)]),
        ("png/RGB-2x3", [(3, 2), (64, 96), (1, 1)]),
        ("png/RGB-17x33", [(224, 434), (16, 32), (8, 40)]),
    ]
    for name, sizes in wanted:
        image = sources[name]
        for width, height in sizes:
            entry = {"from": name, "size": [width, height]}
            for resample in range(6):
                made = image.resize((width, height), Image.Resampling(resample))
                yield {**entry, "filter": resample, "weights": "Pillow", "pixels": sha(made.tobytes())}
            for resample in [0, 2, 3]:
                made = np.ascontiguousarray(torchvision(image, width, height, resample))
                yield {**entry, "filter": resample, "weights": "Torchvision", "pixels": sha(made.tobytes())}


PROCESSORS = {
    "ViT": ViTImageProcessorPil,
    "DeiT": DeiTImageProcessorPil,
    "CLIP": CLIPImageProcessorPil,
    "Bit": BitImageProcessorPil,
    "Siglip": SiglipImageProcessorPil,
    "ConvNext": ConvNextImageProcessorPil,
    "MobileNetV1": MobileNetV1ImageProcessorPil,
    "MobileNetV2": MobileNetV2ImageProcessorPil,
    "EfficientNet": EfficientNetImageProcessorPil,
}


def processed(sources):
    small = {"height": 40, "width": 48}
    configs = [(name, {}) for name in PROCESSORS]
    configs += [
        ("ViT", {"size": 32}),
        ("ViT", {"size": small, "resample": 3, "do_normalize": False}),
        ("ViT", {"size": small, "do_rescale": False}),
        ("ViT", {"size": {"shortest_edge": 30, "longest_edge": 40}, "resample": 1}),
        ("ViT", {"size": {"shortest_edge": 300, "longest_edge": 333}, "image_mean": 0.25, "image_std": [0.1, 0.2, 0.3]}),
        ("ViT", {"size": {"max_height": 50, "max_width": 30}, "resample": 5}),
        ("ViT", {"do_resize": False, "do_center_crop": True, "crop_size": 33}),
        ("DeiT", {"size": {"height": 20, "width": 21}, "crop_size": {"height": 33, "width": 40}, "resample": 4}),
        ("CLIP", {"size": 64, "crop_size": 64}),
        ("CLIP", {"size": {"shortest_edge": 30}, "crop_size": {"height": 45, "width": 31}, "resample": 0}),
        ("CLIP", {"size": {"shortest_edge": 45}, "do_center_crop": False, "rescale_factor": 0.01}),
        ("Bit", {"size": {"shortest_edge": 51}, "crop_size": {"height": 44, "width": 44}}),
        ("Siglip", {"size": 24}),
        ("ConvNext", {"size": {"shortest_edge": 40}}),
        ("ConvNext", {"size": {"shortest_edge": 40}, "crop_pct": 0.95, "do_center_crop": True, "crop_size": 47}),
        ("ConvNext", {"size": {"shortest_edge": 384}, "resample": 2}),
        ("EfficientNet", {"size": small, "rescale_factor": 1 / 127.5, "rescale_offset": True, "include_top": False}),
        ("EfficientNet", {"size": small, "rescale_offset": True, "image_std": [0.47, 0.48, 0.49]}),
        ("EfficientNet", {"size": small, "do_normalize": False, "do_center_crop": True, "crop_size": 30}),
    ]
    names = ["resize/200x150", "resize/96x130", "png/RGB-17x33"]
    for family, config in configs:
        for name in names:
            made = PROCESSORS[family](**config)(sources[name], return_tensors="np")["pixel_values"][0]
            assert made.dtype == np.float32
            yield {
                "from": name,
                "config": {"image_processor_type": f"{family}ImageProcessor", **config},
                "reference": "Pillow",
                "shape": made.shape,
                "values": sha(np.ascontiguousarray(made).astype("<f4").tobytes()),
            }
    yield from emulated(sources, names)


def emulated(sources, names):
    """Torchvision's processors in numpy: the bytes above, what is cut, and mean and deviation scaled in place of the byte."""
    mean, deviation = [0.48, 0.46, 0.41], [0.27, 0.26, 0.28]
    for name in names:
        image = sources[name]
        width, height = image.size
        for edge, crop, resample in [(64, 64, 3), (30, 45, 2), (224, 224, 0)]:
            short, long = min(width, height), max(width, height)
            size = (edge, int(edge * long / short)) if width <= height else (int(edge * long / short), edge)
            array = torchvision(image, *size, resample)
            pad = [(max(crop - side, 0) // 2, (max(crop - side, 0) + 1) // 2) for side in array.shape[:2]]
            array = np.pad(array, [*pad, (0, 0)])
            top, left = [int((side - crop) / 2.0) for side in array.shape[:2]]
            array = array[top:top + crop, left:left + crop].astype(np.float32).transpose(2, 0, 1)
            up = np.float32(1 / (1 / 255))
            fused_mean = (np.float32(mean) * up)[:, None, None]
            fused_deviation = (np.float32(deviation) * up)[:, None, None]
            made = (array - fused_mean) / fused_deviation
            yield {
                "from": name,
                "config": {
                    "image_processor_type": "CLIPImageProcessorFast",
                    "size": {"shortest_edge": edge},
                    "crop_size": crop,
                    "resample": resample,
                    "image_mean": mean,
                    "image_std": deviation,
                },
                "reference": "Torchvision",
                "shape": made.shape,
                "values": sha(np.ascontiguousarray(made).astype("<f4").tobytes()),
            }


def lines(entries):
    return "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n"


def main():
    blob, entries, sources = b"", [], {}
    for name, data in pictures():
        entry, rgb = about(name, data, len(blob))
        blob += data
        entries.append(entry)
        sources[name] = Image.open(io.BytesIO(data)) if name == "resize/gray" else rgb
    (HERE / "pictures.bin").write_bytes(blob)
    (HERE / "pictures.json").write_text(lines(entries))
    made = list(resized(sources))
    (HERE / "resized.json").write_text(lines(made))
    values = list(processed(sources))
    (HERE / "processed.json").write_text(lines(values))
    print(len(entries), "pictures,", len(blob), "bytes;", len(made), "resized;", len(values), "processed")


main()
