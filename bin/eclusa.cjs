#!/usr/bin/env node
// Starts eclusa where Node is new enough, and says so in one line where it is not.
// Written in old syntax: this file must load under any Node.
'use strict'

var needed = [22, 18]
var found = process.versions.node.split('.').map(Number)

if (found[0] > needed[0] || (found[0] === needed[0] && found[1] >= needed[1])) start()
else {
  process.stderr.write(
    'eclusa needs Node ' +
      needed.join('.') +
      ' or newer; this is ' +
      process.version +
      ' at ' +
      process.execPath +
      '; install a newer Node, or run: npx -y -p node@24 node ' +
      __filename +
      '\n',
  )
  process.exitCode = 2
}

function start() {
  muteSqliteNotice()
  import('../dist/cli/main.js').catch(function (error) {
    if (!require('node:fs').existsSync(require('node:path').join(__dirname, '..', 'dist'))) {
      process.stderr.write(
        'eclusa is not built here; run: npm run build, or in a checkout: npm run -s eclusa -- ARGUMENTS\n',
      )
      process.exit(2)
    }
    process.stderr.write('eclusa could not start: ' + ((error && error.stack) || error) + '\n')
    process.exit(70)
  })
}

// Node 22 calls its SQLite experimental at each start; MCP clients show stderr to people as errors.
// Every other warning passes.
function muteSqliteNotice() {
  var emit = process.emitWarning
  process.emitWarning = function (warning) {
    if (/^SQLite is an experimental feature/.test(String(warning))) return
    emit.apply(process, arguments)
  }
}
