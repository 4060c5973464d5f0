// SHA-256 (FIPS 180-4) of content that comes in parts. The browser's own takes only whole content,
// and only on secure origins.

// Signed, so that all sums stay small integers.
const roots = new Int32Array(64);
const start = new Int32Array(8);

// The fractional parts of square and cube roots of primes (FIPS 180-4 §4.2.2, §5.3.3).
for (let candidate = 2, count = 0; count < 64; candidate += 1) {
  let isPrime = true;
  for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) {
    if (candidate % divisor === 0) isPrime = false;
  }
  if (!isPrime) continue;
  const fraction = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32);
  if (count < 8) start[count] = fraction(Math.sqrt(candidate));
  roots[count] = fraction(Math.cbrt(candidate));
  count += 1;
}

export class SHA256 {
  #state = start.slice();
  #words = new Int32Array(64);
  #block = new Uint8Array(64);
  #filled = 0;
  #length = 0;

  /** Takes the next bytes. */
  update(bytes) {
    this.#length += bytes.length;
    let offset = 0;
    if (this.#filled > 0) {
      offset = Math.min(64 - this.#filled, bytes.length);
      this.#block.set(bytes.subarray(0, offset), this.#filled);
      this.#filled += offset;
      if (this.#filled < 64) return this;
      this.#mix(this.#block, 0);
      this.#filled = 0;
    }
    for (; offset + 64 <= bytes.length; offset += 64) this.#mix(bytes, offset);
    this.#block.set(bytes.subarray(offset));
    this.#filled = bytes.length - offset;
    return this;
  }

  /** Returns the digest as hexadecimal digits. The object is used up. */
  finish() {
    const bits = this.#length;
    const end = new Uint8Array(((this.#filled < 56 ? 56 : 120) - this.#filled) + 8);
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.length - 8, Math.floor(bits / 0x20000000));
    view.setUint32(end.length - 4, (bits << 3) >>> 0);
    this.update(end);
    return [...this.#state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #mix(bytes, offset) {
    const w = this.#words;
    for (let i = 0; i < 16; i += 1) {
      const at = offset + i * 4;
      w[i] = bytes[at] << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3];
    }
    for (let i = 16; i < 64; i += 1) {
      const a = w[i - 15];
      const b = w[i - 2];
      const low = (a >>> 7 | a << 25) ^ (a >>> 18 | a << 14) ^ a >>> 3;
      const high = (b >>> 17 | b << 15) ^ (b >>> 19 | b << 13) ^ b >>> 10;
      w[i] = w[i - 16] + low + w[i - 7] + high | 0;
    }
    const s = this.#state;
    let a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (let i = 0; i < 64; i += 1) {
      const high = (e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7);
      const one = h + high + (e & f ^ ~e & g) + roots[i] + w[i] | 0;
      const low = (a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10);
      const two = low + (a & b ^ a & c ^ b & c) | 0;
      h = g; g = f; f = e; e = d + one | 0;
      d = c; c = b; b = a; a = one + two | 0;
    }
    s[0] += a; s[1] += b; s[2] += c; s[3] += d; s[4] += e; s[5] += f; s[6] += g; s[7] += h;
  }
}

export const digest = (bytes) => new SHA256().update(bytes).finish();
