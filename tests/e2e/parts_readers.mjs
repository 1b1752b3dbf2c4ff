// Every live part of a store with all types, of both profiles, flushed and merged, is read alike by the engines that
// script/test fetches (DuckDB, hyparquet, and ClickHouse where it is installed).
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, check, equal, hasPackage, run, skip, test, tools } from './lib.mjs'

if (!hasPackage('hyparquet', 'readers')) skip(`no readers in ${tools}`)
const readers = ['duckdb', 'hyparquet', ...(hasPackage('chdb', 'readers') || hasPackage('chdb') ? ['chdb'] : [])]

// A type, and the JSON of its value in row i.
const pad = (n, width) => String(n).padStart(width, '0')
const time = (i) => `2026-${pad(1 + (i % 12), 2)}-${pad(1 + (i % 28), 2)} ${pad(i % 24, 2)}:${pad(i % 60, 2)}:${pad((i * 7) % 60, 2)}`
const ip6 = (i) => `2001:db8::${(i % 65535).toString(16)}`
const columns = [
  ['Int8', (i) => (i % 256) - 128], ['Int16', (i) => (i * 37) % 32768], ['Int32', (i) => i * 1000003 % 2147483648], ['Int64', (i) => `${i}000000007`],
  ['UInt8', (i) => i % 256], ['UInt16', (i) => i % 65536], ['UInt32', (i) => (i * 40503) % 4294967296], ['UInt64', (i) => `${i}23456789`],
  ['Int128', (i) => `-${i}00000000000000000001`], ['UInt128', (i) => `${i}00000000000000000001`],
  ['Int256', (i) => `-${i}0000000000000000000000000000000000001`], ['UInt256', (i) => `${i}0000000000000000000000000000000000001`],
  ['Float32', (i) => i / 8], ['Float64', (i) => i / 7], ['Bool', (i) => i % 3 === 0], ['String', (i) => `text ${i % 50} äöü`],
  ['FixedString(4)', (i) => pad(i % 10000, 4)], ["Enum8('a' = 1, 'b' = -2)", (i) => (i % 2 ? 'a' : 'b')], ["Enum16('x' = 1000, 'y' = 2)", (i) => (i % 2 ? 'x' : 'y')],
  ['LowCardinality(String)', (i) => `low ${i % 5}`], ['LowCardinality(Nullable(String))', (i) => (i % 4 ? `low ${i % 5}` : null)],
  ['Nullable(Int32)', (i) => (i % 5 ? i : null)], ['Nullable(String)', (i) => (i % 6 ? `n${i}` : null)], ['Nullable(Float64)', (i) => (i % 7 ? i / 3 : null)],
  ['Nullable(DateTime64(3))', (i) => (i % 3 ? `${time(i)}.${pad(i % 1000, 3)}` : null)], ['Nullable(UUID)', (i) => (i % 2 ? `00000000-0000-4000-8000-${pad(i, 12)}` : null)],
  ['Date', (i) => time(i).slice(0, 10)], ['Date32', (i) => time(i).slice(0, 10)], ['DateTime', time], ["DateTime('Europe/Berlin')", time],
  ['DateTime64(3)', (i) => `${time(i)}.${pad(i % 1000, 3)}`], ['DateTime64(6)', (i) => `${time(i)}.${pad(i, 6)}`],
  ['Decimal(9, 2)', (i) => `${i}.25`], ['Decimal(18, 4)', (i) => `${i}.0625`], ['Decimal(38, 10)', (i) => `${i}12345678.0000000001`],
  ['UUID', (i) => `00000000-0000-4000-8000-${pad(i, 12)}`], ['IPv4', (i) => `10.${(i >> 8) % 256}.${i % 256}.1`], ['IPv6', ip6],
  ['Array(Int32)', (i) => Array.from({ length: i % 4 }, (_, k) => i + k)], ['Array(Nullable(String))', (i) => (i % 3 ? [`a${i}`, null] : [])],
  ['Array(Array(UInt16))', (i) => [[i % 65536], []]], ['Map(String, String)', (i) => ({ [`k${i % 9}`]: `v${i}` })],
  ['Map(LowCardinality(String), Float64)', (i) => ({ one: i / 2, two: 2 })], ['Tuple(a Int32, b String)', (i) => ({ a: i, b: `t${i}` })],
  ['Array(Tuple(x Int8, y String))', (i) => [{ x: i % 100, y: `y${i}` }]],
]
const names = columns.map((_, i) => `c${i}`)
const rowsOf = (from, count) => Array.from({ length: count }, (_, k) =>
  JSON.stringify({ k: from + k, p: (from + k) % 2, ...Object.fromEntries(columns.map(([, value], c) => [names[c], value(from + k)])) })).join('\n')

const d = await Daemon.start({})
async function fill(profile) {
  const t = `all_${profile}`
  await d.sql(`CREATE TABLE ${t} (k UInt64, p UInt8, ${columns.map(([type], i) => `${names[i]} ${type}`).join(', ')}) ENGINE = MergeTree
    PARTITION BY p ORDER BY (k, c15) SETTINGS profile = '${profile}'`)
  const insert = async (from, count) => {
    const answer = await d.insert(t, rowsOf(from, count), { async_insert: 0 })
    equal(answer.status, 200, answer.text)
  }
  await insert(1, 300)
  await insert(301, 9000) // a page index
  await d.sql(`OPTIMIZE TABLE ${t} FINAL`)
  await d.sql(`SYSTEM STOP MERGES ${t}`)
  await insert(9301, 1)
  await insert(9302, 40)
}

await test(d, {
  'two stores with all types': async () => {
    for (const profile of ['lake', 'native']) await fill(profile)
  },
  'every live part is read alike': async () => {
    const parts = await d.rows('SELECT path, rows, level FROM system.parts WHERE active ORDER BY path')
    check(parts.some(([, , level]) => Number(level) > 0) && parts.some(([, , level]) => Number(level) === 0), 'merged parts and others')
    equal(parts.reduce((sum, [, rows]) => sum + Number(rows), 0), 2 * 9341, 'rows')
    const check_mjs = path.join(tools, 'readers/check.mjs')
    const files = parts.map(([file]) => file)
    for (const file of files) check(fs.existsSync(file), file)
    const { stdout, stderr } = await run(process.execPath, [check_mjs, 'compare', '--compact', '--readers', readers.join(','), ...files], { cwd: path.dirname(check_mjs) })
    const other = stdout.split('\n').filter((line) => line.includes('"verdict"') && !line.includes('"verdict":"exact"'))
    equal(other, [], `${stderr}`)
    equal(stdout.split('"verdict":"exact"').length - 1, files.length, 'files compared')
  },
})
