// Cosines and sines of every pair at every position, from the library, and what the page reads off them.

import { ask, doubles } from '../core';

export const positions = 256;

export class RopeTable {
  readonly pairs: number;
  constructor(private readonly numbers: Float64Array) {
    this.pairs = numbers.length / positions / 2;
  }

  static async load(dims: number, base: number): Promise<RopeTable> {
    return new RopeTable(doubles((await ask({ call: 'table', scheme: { scheme: 'rope', dims, base }, first: 0, count: positions, dtype: 'f64' })).bytes));
  }

  cos = (position: number, pair: number): number => this.numbers[position * 2 * this.pairs + pair];
  sin = (position: number, pair: number): number => this.numbers[position * 2 * this.pairs + this.pairs + pair];
  /// Radians that the pair turns in one position.
  frequency = (pair: number): number => Math.atan2(this.sin(1, pair), this.cos(1, pair));
  /// The cosine of the angle between the hands at two positions.
  between = (m: number, n: number, pair: number): number => this.cos(m, pair) * this.cos(n, pair) + this.sin(m, pair) * this.sin(n, pair);
  /// The score of a query and a key that point the same way before they are rotated.
  score(m: number, n: number): number {
    let sum = 0;
    for (let pair = 0; pair < this.pairs; ++pair) sum += this.between(m, n, pair);
    return sum / this.pairs;
  }
}
