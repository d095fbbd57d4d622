// Folders of tests, removed when whatever wrote into them has been ended.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made: string[] = []

// Not after each test: a hook that fails, because something still writes, keeps the next hooks from running, and
// they are those that end what writes.
process.once('exit', () => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true, maxRetries: 10 })
})

/** A fresh folder whose name begins so. It is there until this process ends. */
export function folder(prefix: string): string {
  const dir = mkdtempSync(join(tmpdir(), prefix))
  made.push(dir)
  return dir
}
