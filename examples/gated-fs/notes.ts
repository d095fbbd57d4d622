// Notes on disk: one file a request_id, whoever and however many write at once.

import { createHash, randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, realpath, rm, unlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import { z } from 'zod'

/** The shape of a note, in a file and in an answer. */
export const NOTE: z.ZodObject<{ request_id: z.ZodString; text: z.ZodString }> = z.object({
  request_id: z.string(),
  text: z.string(),
})

export type Note = { readonly request_id: string; readonly text: string }

/** conflict: the request_id was used with another text; nothing changed. */
export type Written = 'committed' | 'replay' | 'conflict'

/** `beforePublishing` runs when the note is durable in its temporary file and not yet visible. */
export type NotesOptions = {
  readonly dir: string
  readonly beforePublishing?: () => Promise<void>
}

export type Notes = {
  /** When it resolves, the note under `request_id` is on disk, synced, and is the only one. */
  write(note: Note): Promise<Written>
  /** All published notes, by file name. Rejects when there are more than `NOTES_AT_MOST`. */
  read(): Promise<readonly Note[]>
  /** Removes PATH below the folder `scratch`; anything else is refused. */
  remove(path: string): Promise<void>
}

/** More notes than this and an answer would no longer be one that an agent can read. */
export const NOTES_AT_MOST = 10_000

const TEMPORARY = /^\.[0-9a-f]{64}\.(\d+)-([0-9a-f]{8})\.\d+\.tmp$/

/** Opens the notes below `dir` (created, mode 0700) and removes temporaries that dead processes left. */
export async function openNotes(options: NotesOptions): Promise<Notes> {
  const root = resolve(options.dir)
  const notes = join(root, 'notes')
  const nonce = randomBytes(4).toString('hex')
  await mkdir(notes, { recursive: true, mode: 0o700 })
  await syncFolder(root)
  await sweep(notes, nonce)

  let written = 0
  const temporaryOf = (key: string): string => {
    written += 1
    return join(notes, `.${key}.${process.pid}-${nonce}.${written}.tmp`)
  }
  return {
    async write(note) {
      const key = createHash('sha256').update(note.request_id).digest('hex')
      const destination = join(notes, `${key}.json`)
      // The order of the members is the canonical one: by code point.
      const payload = JSON.stringify({ request_id: note.request_id, text: note.text })
      const before = await stored(destination)
      if (before !== undefined) return settled(notes, before, payload)

      const temporary = temporaryOf(key)
      try {
        await writeSynced(temporary, payload)
        await options.beforePublishing?.()
        return await publish(temporary, destination, payload)
      } finally {
        await unlink(temporary).catch(ignoreMissing)
      }
    },
    read: () => readAll(notes),
    remove: (path) => removeBelow(join(root, 'scratch'), path),
  }
}

/** A link never replaces: of two processes that race, the second is told that the name exists. */
async function publish(temporary: string, destination: string, payload: string): Promise<Written> {
  try {
    await link(temporary, destination)
  } catch (error) {
    const winner = isCode(error, 'EEXIST') ? await stored(destination) : undefined
    if (winner === undefined) throw error
    return settled(dirname(destination), winner, payload)
  }
  await syncFolder(dirname(destination))
  return 'committed'
}

async function settled(notes: string, found: string, payload: string): Promise<Written> {
  if (found !== payload) return 'conflict'
  // The process that published it may not have come to its own sync.
  await syncFolder(notes)
  return 'replay'
}

async function readAll(notes: string): Promise<readonly Note[]> {
  const names = (await readdir(notes)).filter((name) => name.endsWith('.json')).toSorted()
  if (names.length > NOTES_AT_MOST) throw new Error(`more than ${NOTES_AT_MOST} notes`)
  const found: Note[] = []
  for (const name of names) {
    found.push(NOTE.parse(JSON.parse(await readFile(join(notes, name), 'utf8'))))
  }
  return found
}

async function removeBelow(scratch: string, path: string): Promise<void> {
  const target = resolve(scratch, path)
  // The folder is resolved too: a link inside scratch must not lead out of it.
  const folder = await realpath(dirname(target))
  if (!`${folder}/`.startsWith(`${await realpath(scratch)}/`) || target === scratch) {
    throw new Error('only paths below scratch')
  }
  await rm(target, { recursive: true, force: true })
}

/** The text of a published note; undefined when there is none. */
async function stored(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    return ignoreMissing(error)
  }
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** A temporary is an orphan when its process is gone, or bears this process's id and not its nonce. */
async function sweep(notes: string, nonce: string): Promise<void> {
  for (const name of await readdir(notes)) {
    const [, pid, owner] = TEMPORARY.exec(name) ?? []
    if (pid === undefined || owner === nonce) continue
    if (Number(pid) !== process.pid && isAlive(Number(pid))) continue
    await unlink(join(notes, name)).catch(ignoreMissing)
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return isCode(error, 'EPERM')
  }
}

function ignoreMissing(error: unknown): undefined {
  if (!isCode(error, 'ENOENT')) throw error
  return undefined
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
