// Eclusa as the client under test of the official conformance suite, in both eras.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'

import { conformance, required } from './suite.ts'

// Authorisation is not ours yet: a server's 401 is told, not answered (docs/protocol.md).
const isOurs = (scenario: string): boolean => !scenario.startsWith('auth/')
/** Not required, and passed all the same. */
const MORE = ['json-schema-2020-12-preservation']
const COUNTS: Readonly<Record<string, number>> = { '2026-07-28': 7, '2025-11-25': 4 }
const DRIVER = join(import.meta.dirname, 'client-driver.ts')

for (const [revision, count] of Object.entries(COUNTS)) {
  test(`servers of the conformance suite find a client of ${revision} in Eclusa`, async (t) => {
    const scenarios = required(revision, 'client').filter(isOurs)
    assert.equal(scenarios.length, count)
    for (const scenario of [...scenarios, ...MORE]) {
      await t.test(scenario, async () => {
        const run = await conformance([
          'client',
          ...['--command', `${process.execPath} ${DRIVER}`],
          ...['--scenario', scenario, '--spec-version', revision, '--timeout', '60000'],
        ])
        const shown = run.get(scenario)
        assert.ok(shown !== undefined && shown.checks > 0, `${scenario} checked nothing`)
        assert.deepEqual([...shown.missed], [])
      })
    }
  })
}
