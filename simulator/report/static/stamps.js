// Thousands of discs at once: written straight into the picture's pixels, which is many times
// faster than asking the canvas for each.

/** How much of each pixel a disc covers, from 0 to 255. */
function discMask(radius) {
  const half = Math.ceil(radius);
  const size = 2 * half + 1;
  const alpha = new Uint8Array(size * size);
  for (let j = 0; j < size; j++) {
    for (let i = 0; i < size; i++) {
      const inside = radius + 0.5 - Math.hypot(i - half, j - half);
      alpha[j * size + i] = Math.round(255 * Math.min(1, Math.max(0, inside)));
    }
  }
  return {half, size, alpha};
}

/** A colour as a pixel; #rrggbb or rgb(r,g,b). */
function pixelOf(colour) {
  const [r, g, b] = colour.startsWith("#") ? channels(hexOf(colour)) : colour.match(/\d+/g).map(Number);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

class Stamps {
  /** A picture on top of a background that stays. */
  constructor(background) {
    const {width, height} = background.canvas;
    this.width = width;
    this.height = height;
    this.back = new Uint32Array(background.getImageData(0, 0, width, height).data.buffer);
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  clear() {
    this.pixels.set(this.back);
  }

  /** A disc with its centre at a pixel. */
  disc(x, y, {half, size, alpha}, colour) {
    const left = Math.round(x) - half;
    const top = Math.round(y) - half;
    if (left < 0 || top < 0 || left + size > this.width || top + size > this.height) return;
    const {pixels, width} = this;
    for (let j = 0, k = 0; j < size; j++) {
      let place = (top + j) * width + left;
      for (let i = 0; i < size; i++, k++, place++) {
        const a = alpha[k];
        if (a === 255) pixels[place] = colour;
        else if (a) pixels[place] = mix(pixels[place], colour, a);
      }
    }
  }

  show(context) {
    context.putImageData(this.image, 0, 0);
  }
}

/** A part a of 255 of the second pixel over the first. */
function mix(under, over, a) {
  const b = 255 - a;
  const red = ((under & 255) * b + (over & 255) * a) >> 8;
  const green = (((under >> 8) & 255) * b + ((over >> 8) & 255) * a) >> 8;
  const blue = (((under >> 16) & 255) * b + ((over >> 16) & 255) * a) >> 8;
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
