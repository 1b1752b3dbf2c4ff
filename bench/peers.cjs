// The engines that the benchmarks compare with: ClickHouse as a library (chdb) and DuckDB, both from npm, in this process.
'use strict'
const path = require('node:path')
const { fail, root, table } = require('./common.cjs')

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

const chdb = () => load('the engine', 'node_modules/chdb')
const columns = table.slice(1, table.indexOf(') ENGINE')).replace(/\s+/g, ' ')

// The engine in dir, with the benchmarks' table m.
function engineSession(dir) {
  const session = new (chdb().Session)(dir)
  session.query('CREATE DATABASE IF NOT EXISTS b ENGINE = Atomic')
  session.query('USE b')
  session.query(`CREATE TABLE m ${table}`)
  return session
}

async function duckConnection() {
  const { DuckDBInstance } = load('DuckDB', 'readers/node_modules/@duckdb/node-api')
  return (await DuckDBInstance.create(':memory:', { threads: '1' })).connect()
}

// A file of rows as each reads it.
const engineRows = (file) => `file(${quoted(file)}, JSONEachRow, ${quoted(columns)})`
const duckRows = (file) => `SELECT * FROM read_json('${file}', format = 'newline_delimited', columns = {ts: 'TIMESTAMP',
  service: 'VARCHAR', host: 'VARCHAR', region: 'VARCHAR', metric: 'VARCHAR', value: 'DOUBLE', tags: 'MAP(VARCHAR, VARCHAR)'})`

module.exports = { quoted, cpuSeconds, chdb, engineSession, engineRows, duckConnection, duckRows }
