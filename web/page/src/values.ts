// Formatting and colouring of numbers in arrays and registers.

/** Decodes base64. */
export function bytes(base64: string): Uint8Array {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

const SIZES: Record<string, number> = {
  u8: 1,
  i8: 1,
  u16: 2,
  i16: 2,
  f16: 2,
  bf16: 2,
  u32: 4,
  i32: 4,
  f32: 4,
  u64: 8,
  i64: 8,
  f64: 8,
};

const scratch = new DataView(new ArrayBuffer(8));

export function f16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export function f32(bits: number): number {
  scratch.setUint32(0, bits);
  return scratch.getFloat32(0);
}

/** The elements of an array as numbers, for drawing and comparing; 64-bit elements are rounded. */
export function numbers(dtype: string, data: Uint8Array): Float64Array {
  const size = SIZES[dtype] ?? 4;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const out = new Float64Array(Math.floor(data.length / size));
  const read: Record<string, (at: number) => number> = {
    u8: (at) => view.getUint8(at),
    i8: (at) => view.getInt8(at),
    u16: (at) => view.getUint16(at, true),
    i16: (at) => view.getInt16(at, true),
    f16: (at) => f16(view.getUint16(at, true)),
    bf16: (at) => f32(view.getUint16(at, true) << 16),
    u32: (at) => view.getUint32(at, true),
    i32: (at) => view.getInt32(at, true),
    f32: (at) => view.getFloat32(at, true),
    u64: (at) => Number(view.getBigUint64(at, true)),
    i64: (at) => Number(view.getBigInt64(at, true)),
    f64: (at) => view.getFloat64(at, true),
  };
  const get = read[dtype] ?? read.u32;
  for (let i = 0; i < out.length; i++) out[i] = get(i * size);
  return out;
}

/** An element of an array as text, with all its digits. */
export function element(dtype: string, data: Uint8Array, values: Float64Array, at: number): string {
  if (dtype !== "u64" && dtype !== "i64") return format(dtype, values[at]);
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  return String(dtype === "u64" ? view.getBigUint64(8 * at, true) : view.getBigInt64(8 * at, true));
}

/** Formats a number: floats with the shortest digits that identify them. */
export function format(dtype: string, value: number): string {
  if (Object.is(value, -0)) return "-0";
  if (!dtype.includes("f") || (dtype === "f64" && Number.isFinite(value))) return String(value);
  if (dtype === "f32") {
    for (let digits = 6; digits <= 9; digits++) {
      const short = Number(value.toPrecision(digits));
      if (Math.fround(short) === value) return String(short);
    }
  }
  const digits = { f16: 5, bf16: 4 }[dtype] ?? 9;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  return String(Number(value.toPrecision(digits)));
}

export type Format = "hex" | "u32" | "i32" | "f32" | "f16";

/** Formats the 32 bits of a register. */
export function register(bits: number, as: Format): string {
  switch (as) {
    case "hex":
      return (bits >>> 0).toString(16).padStart(8, "0");
    case "u32":
      return String(bits >>> 0);
    case "i32":
      return String(bits | 0);
    case "f32":
      return format("f32", f32(bits));
    case "f16":
      return `${format("f16", f16(bits & 0xffff))} ${format("f16", f16(bits >>> 16))}`;
  }
}

/** The value of a register as a number, for comparing lanes. */
export function numeric(bits: number, as: Format): number {
  switch (as) {
    case "i32":
      return bits | 0;
    case "f32":
      return f32(bits);
    case "f16":
      return f16(bits & 0xffff);
    default:
      return bits >>> 0;
  }
}

// Lightness increases monotonically, and blue and yellow are distinguishable with every kind of colour vision.
const STOPS: [number, number, number][] = [
  [0, 32, 77],
  [32, 62, 110],
  [86, 92, 108],
  [124, 123, 120],
  [165, 154, 112],
  [208, 190, 89],
  [253, 231, 76],
];

/** A colour for a value between 0 and 1. */
export function colour(t: number): [number, number, number] {
  if (!Number.isFinite(t)) return [190, 60, 110];
  const x = Math.min(Math.max(t, 0), 1) * (STOPS.length - 1);
  const at = Math.min(Math.floor(x), STOPS.length - 2);
  const [a, b] = [STOPS[at], STOPS[at + 1]];
  return [0, 1, 2].map((k) => Math.round(a[k] + (b[k] - a[k]) * (x - at))) as [number, number, number];
}

/** Smallest and largest finite value. */
export function range(values: Iterable<number>): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 0];
}
