// The guards that are taken away, one line each, and the tests that must turn red.

/** One guard taken away: `find` stands once in `file`; `red` is a part of the name of a test in `test` that
 *  must fail then. */
export type Sabotage = {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly put: string
  readonly test: string
  readonly red: string
}

/** One call through the lock. */
export const CALL: readonly Sabotage[] = [
  {
    name: 'skip the sync',
    file: 'src/store/book.ts',
    find: 'PRAGMA synchronous=FULL',
    put: 'PRAGMA synchronous=OFF',
    test: 'test/store/faults.test.ts',
    red: 'nothing is acknowledged while a write of the log is not synced',
  },
  {
    name: 'forward what the client sent, not what was decided',
    file: 'src/gateway.ts',
    find: '  const { args } = decision\n',
    put: "  const args = (params['arguments'] ?? decision.args) as JsonObject\n",
    test: 'test/gateway.test.ts',
    red: 'what was decided is what is sent',
  },
  {
    name: 'drop own properties',
    file: 'src/json.ts',
    find: 'const NOTHING: object = Object.freeze({ __proto__: null })',
    put: 'const NOTHING: object = Object.freeze({})',
    test: 'test/json/vectors.test.ts',
    red: 'an admitted object inherits nothing',
  },
  {
    name: 'swallow EIO',
    file: 'src/store/trouble.ts',
    find: "return { kind: 'sync', why: 'a sync of ledger.db failed",
    put: "return { kind: 'refuse', why: 'a sync of ledger.db failed",
    test: 'test/store/faults.test.ts',
    red: 'a fault in any write, sync, rename, cut or unlink loses nothing',
  },
  {
    name: 'ignore a short write',
    file: 'src/store/mirror.ts',
    find: 'for (let done = 0; done < bytes.length;) done += writeSync(file.fd, bytes, done)',
    put: 'writeSync(file.fd, bytes)',
    test: 'test/store/faults.test.ts',
    red: 'a write that the kernel cuts short',
  },
  {
    name: 'allow on error',
    file: 'src/policy/judge.ts',
    find: "return typeof value === 'boolean' ? value : null",
    put: "return typeof value === 'boolean' ? value : true",
    test: 'test/policy/decide-arguments.test.ts',
    red: 'a rule that cannot be decided denies',
  },
  {
    name: 'record after the answer',
    file: 'src/gateway.ts',
    find: '  await record(visit, attempt)\n  return visit.page',
    put: '  void record(visit, attempt)\n  return visit.page',
    test: 'test/gateway.test.ts',
    red: 'gives no answer out',
  },
  {
    name: 'tell a denial before its record',
    file: 'src/gateway.ts',
    find: '  await page.doors.store.append({\n    ...draft(page, facts),',
    put: '  void page.doors.store.append({\n    ...draft(page, facts),',
    test: 'test/gateway.test.ts',
    red: 'is not told',
  },
  {
    name: 'skip the state fold',
    file: 'src/cli/audit-check.ts',
    find: '    return fold.compare(table, rows)',
    put: '    return fold.compare(table, rows).slice(0, 0)',
    test: 'test/ledger/audit.test.ts',
    red: 'every edit of any column of a chained row is found',
  },
]

/** The whole protocol. */
export const PROTOCOL: readonly Sabotage[] = [
  {
    name: 'skip the check of Origin',
    file: 'src/mcp/http/guard.ts',
    find: '  if (origin !== undefined && !posts.origins.has(origin) && !posts.own.has(origin)) {',
    put: '  if (origin !== undefined && posts.hosts.size === 0) {',
    test: 'test/cases/origin-cors-87f6.test.ts',
    red: 'hosts and origins are compared whole',
  },
  {
    name: 'give a session to whoever knows its id',
    file: 'src/mcp/http/seat.ts',
    find: '      return isSame(session.client, client) ? session : null',
    put: '      return session',
    test: 'test/mcp/http/session.test.ts',
    red: 'a session of another client does not exist',
  },
  {
    name: 'take the state of a round for any client and call',
    file: 'src/hall/rounds.ts',
    find: '  if (sealed === null || sealed.binding !== bindingOf(call)) return null',
    put: '  if (sealed === null) return null',
    test: 'test/hall/rounds.test.ts',
    red: 'state is good for this client and these arguments only',
  },
  {
    name: 'believe the header that names the tool',
    file: 'src/mcp/http/headers.ts',
    find: '  return meant === name ? null : mismatch(',
    put: '  return meant !== null ? null : mismatch(',
    test: 'test/mcp/http/headers.test.ts',
    red: 'is a mismatch',
  },
  {
    name: 'believe the headers that mirror arguments',
    file: 'src/mcp/front/serve-call.ts',
    find: "  if (problem !== null) return { kind: 'mismatch', problem }",
    put: "  if (problem === '') return { kind: 'mismatch', problem }",
    test: 'test/mcp/front/channels.test.ts',
    red: 'headers that mirror arguments are checked',
  },
  {
    name: 'follow a redirect to a private address',
    file: 'src/mcp/upstream-http/site.ts',
    find: 'to.host === url.host || !isPrivateLiteral(to.hostname))',
    put: "to.host === url.host || to.hostname !== '')",
    test: 'test/mcp/upstream-http/site.test.ts',
    red: 'is not followed, even where redirects are',
  },
  {
    name: 'connect wherever a name leads',
    file: 'src/mcp/upstream-http/site.ts',
    find: 'const open = allowPrivate || (isOwn && inside === true)',
    put: 'const open = allowPrivate || isOwn || inside !== true',
    test: 'test/mcp/upstream-http/site.test.ts',
    red: 'a name that led to a public address and then leads inside',
  },
  {
    name: 'send a write again when its connection was closed',
    file: 'src/mcp/upstream-http/wire.ts',
    find: "  if (told.stale && waiter.byItems === true && !tried.has('stale')) {",
    put: "  if (told.stale && !tried.has('stale')) {",
    test: 'test/mcp/upstream-http/call.test.ts',
    red: 'a list that met a closed connection is asked for again; a call is not',
  },
  {
    name: 'show what a task asks without asking policy',
    file: 'src/hall/tasks.ts',
    find: '    if (failure !== null) return refused(page, failure)\n  }\n  const ended',
    put: '  }\n  const ended',
    test: 'test/mcp/front/tasks.test.ts',
    red: 'what a task asks reaches the client only where policy grants it',
  },
  {
    name: 'take the cursor of another client',
    file: 'src/mcp/front/pages.ts',
    find: '  const isOwn = name === client.name && profile === client.profile && list === kind',
    put: '  const isOwn = name !== undefined && profile !== undefined && list === kind',
    test: 'test/mcp/front/pages.test.ts',
    red: 'a cursor is good for the client that was given it and for no other',
  },
  {
    name: 'send on what was only recalled',
    file: 'src/gateway.ts',
    find: '  const attempt = away ? AWAY : await send(visit)',
    put: '  const attempt = away && visit === null ? AWAY : await send(visit)',
    test: 'test/gateway.test.ts',
    red: 'sends nothing to a server that is away',
  },
]
