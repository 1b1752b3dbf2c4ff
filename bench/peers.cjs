// The engines that the benchmarks compare with: ClickHouse as a library (chdb) and DuckDB, both from npm, in this process.
'use strict'
const path = require('node:path')
const { fail, root } = require('./common.cjs')

const tools = path.resolve(process.env.SLUICE_ORACLE_DIR ?? path.join(root, 'build/oracle'))

function load(name, file) {
  try {
    return require(path.join(tools, file))
  } catch (error) {
    return fail(`${name} is not in ${tools}: script/test --oracle fetches it (${error.message.split('\n')[0]})`)
  }
}

const quoted = (text) => `'${text.replace(/[\\']/g, '\\$&')}'`

// CPU seconds of this process while work() runs.
async function cpuSeconds(work) {
  const before = process.cpuUsage()
  await work()
  const used = process.cpuUsage(before)
  return (used.user + used.system) / 1e6
}

module.exports = {
  quoted, cpuSeconds,
  chdb: () => load('the engine', 'node_modules/chdb'),
  duckdb: () => load('DuckDB', 'readers/node_modules/@duckdb/node-api'),
}
