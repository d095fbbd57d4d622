// How far a test trusts the clock of a machine that it shares.

/** Full figures instead of the scaled ones, and the product's times as they are promised. */
const LONG = process.env['ECLUSA_LONG'] === '1'

/** The time in which something promised within `ms` has to be there. Beside other tests on few cores everything
 *  comes late, so that only the long form holds the promise to the letter; without it a fault is found all the
 *  same, for what does not work does not come at all. */
export const roomy = (ms: number): number => (LONG ? ms : 8 * ms)

/** Measures until `holds`, and gives the last that was measured. What else a machine does passes from one try to
 *  the next; a fault of the product is there each time. */
export async function tried<T>(
  measure: () => Promise<T>,
  holds: (measured: T) => boolean,
  tries: number = LONG ? 1 : 4,
): Promise<T> {
  const measured = await measure()
  return tries === 1 || holds(measured) ? measured : tried(measure, holds, tries - 1)
}
