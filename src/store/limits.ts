// The named limits of this room.

/** Every wait, queue and size of the store. Times are milliseconds. */
export const STORE_LIMITS: {
  /** Requests that wait for their commit; more are refused with `not_recorded`. */
  readonly queue: number
  /** Characters of waiting requests, together. */
  readonly queueChars: number
  /** Requests in one transaction, so that no commit is long. */
  readonly batch: number
  /** How long a request may wait for the ledger's lock, whoever holds it. */
  readonly lockWaitMs: number
  /** How long an answer waits for the mirror's lock before the mirror follows later. */
  readonly mirrorWaitMs: number
  /** How long a start waits for another start, or a repair, on the same directory. */
  readonly startWaitMs: number
  /** When the main thread gives up on a request that the writer never answered (a disk that hangs). */
  readonly hangMs: number
  /** How often files, pins and the mirror's sync are looked after: half of the second that is promised. */
  readonly tickMs: number
  readonly renewMs: number
  /** Renewals of ours in which another's lease did not move before it is ended: 10 s at 2 s each. */
  readonly missedBeats: number
  /** How much of the mirror's end is compared with the ledger at start. */
  readonly tailBytes: number
  /** Bytes of the log held in memory while the mirror is rebuilt. */
  readonly copyBytes: number
  /** Pages in the write-ahead log after which it is copied into the database. */
  readonly checkpointPages: number
  /** Pages in the write-ahead log at which a writer waits until it can be begun anew: with several
   *  writers the log is never quiet by itself. 64 MiB. */
  readonly logPages: number
  /** How long it waits for that. */
  readonly logWaitMs: number
  /** Outcomes that could not be recorded and are tried again. */
  readonly owed: number
  /** Age at which an operation without a key whose client was asked and never came back is over: longer than
   *  any token of its state lives. */
  readonly inputMs: number
  /** Operations that one renewal ends for that. */
  readonly swept: number
  /** Age at which a lock file that no lease names is removed. */
  readonly orphanMs: number
  /** How far the clock may be before the ledger's time at a start: a step of the time service, or a machine
   *  that has just woken. */
  readonly clockBackMs: number
  /** Records in which the ledger's time is looked for. */
  readonly clockRecords: number
} = {
  queue: 4_096,
  queueChars: 64 * 1024 * 1024,
  batch: 512,
  lockWaitMs: 5_000,
  mirrorWaitMs: 50,
  startWaitMs: 10_000,
  hangMs: 15_000,
  tickMs: 500,
  renewMs: 2_000,
  missedBeats: 5,
  tailBytes: 1024 * 1024,
  copyBytes: 1024 * 1024,
  checkpointPages: 1_000,
  logPages: 16_384,
  logWaitMs: 100,
  owed: 1_000,
  inputMs: 20 * 60_000,
  swept: 100,
  orphanMs: 60_000,
  clockBackMs: 60_000,
  clockRecords: 1_000,
}
