// The store's contract on SQLite.

import type { Store } from '../../src/ports.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { contract } from './contract.ts'
import { contractOfRounds } from './contract-rounds.ts'
import { optionsFor, scratch, verified } from './scene.ts'

const open: Parameters<typeof contract>[1] = async (t) => {
  const opened: Store[] = []
  t.after(() => Promise.all(opened.map((store) => store.stop().catch(() => undefined))))
  const dir = scratch(t)
  const store = await openSqlite(optionsFor(dir))
  opened.push(store)
  return { store, entries: () => verified(dir) }
}

contract('sqlite', open)
contractOfRounds('sqlite', open)
