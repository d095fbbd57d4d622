// What the parts of the fixture share: its stage and the smallest of its answers.

import type { CallToolResult } from '@modelcontextprotocol/server'

/** What all servers of one process share. `waits`: how many calls of `test_wait` began, and how many of them
 *  were cancelled. */
export type Stage = {
  readonly toggleTool: () => void
  readonly togglePrompt: () => void
  readonly update: (uri: string) => void
  readonly waits: { begun: number; cancelled: number }
}

/** A picture of one point. */
export const IMAGE: { readonly data: string; readonly mimeType: 'image/png' } = {
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  mimeType: 'image/png',
}

/** A result of one text. */
export const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })
