// 2,000 real rows, one a request, over 64 connections: every answer says how far they came, and SELECT gives them all back,
// value for value. Where DuckDB (or the ClickHouse engine) is installed, it reads the parts and agrees.
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, check, equal, hasPackage, parallel, root, run, test, tools } from './lib.mjs'

const lines = fs.readFileSync(path.join(root, 'tests/data/metrics/rows.ndjson'), 'utf8').split('\n').filter(Boolean)
const table = (name) => `CREATE TABLE ${name} (ts DateTime64(3), service LowCardinality(String), host String, region String,
  metric String, value Float64, tags Map(String, String)) ENGINE = MergeTree PARTITION BY toDate(ts) ORDER BY (service, metric, ts)`
const columns = 'ts, service, host, region, metric, value, tags'

const sortedTags = (tags) => Object.entries(tags).map(([k, v]) => `${k}=${v}`).sort()
const wanted = lines.map((line) => {
  const r = JSON.parse(line)
  return JSON.stringify([r.ts, r.service, r.host, r.region, r.metric, r.value, sortedTags(r.tags ?? {})])
}).sort()

async function stored(d, name) {
  const rows = await d.rows(`SELECT ${columns} FROM ${name}`)
  return rows.map((r) => JSON.stringify([...r.slice(0, 6), sortedTags(r[6])])).sort()
}

function parts(d, name) {
  const dir = path.join(d.data, 'tables/default', name)
  return fs.readdirSync(dir).filter((p) => !p.startsWith('_'))
    .flatMap((p) => fs.readdirSync(path.join(dir, p)).filter((f) => f.endsWith('.parquet') && !f.startsWith('_')).map((f) => path.join(dir, p, f)))
}

const d = await Daemon.start()
await test(d, {
  'wait mode: 2,000 answers 200 stored': async () => {
    await d.sql(table('waited'))
    const answers = await parallel(64, lines.map((line) => () => d.insert('waited', line)))
    for (const a of answers) {
      check(a.status === 200, `status ${a.status}: ${a.text}`)
      equal(a.headers['x-sluice-ack'], 'stored', 'X-Sluice-Ack')
      equal(JSON.parse(a.headers['x-clickhouse-summary']).written_rows, '1', 'written_rows')
    }
  },
  'wait mode: the same rows come back': async () => equal(await stored(d, 'waited'), wanted, 'rows'),
  'fire and forget: 2,000 answers 200 buffered, then a flush': async () => {
    await d.sql(table('thrown'))
    const answers = await parallel(64, lines.map((line) => () => d.insert('thrown', line, { wait_for_async_insert: 0 })))
    for (const a of answers) {
      check(a.status === 200, `status ${a.status}: ${a.text}`)
      equal(a.headers['x-sluice-ack'], 'buffered', 'X-Sluice-Ack')
    }
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal(await stored(d, 'thrown'), wanted, 'rows')
  },
  'they really were batched': async () => {
    const flushes = await d.metric('sluice_flushes_total')
    check(flushes < 2000, `${flushes} flushes for 4,000 inserts`)
  },
  'after a restart they are still there': async () => {
    await d.restart()
    equal(await stored(d, 'waited'), wanted, 'rows')
    equal(await stored(d, 'thrown'), wanted, 'rows')
  },
  'independent readers agree on every live part': async () => {
    if (!hasPackage('@duckdb/node-api', 'readers')) {
      console.log('skipped: DuckDB is not installed (script/test brings it)')
      return
    }
    const live = (await d.rows("SELECT path FROM system.parts WHERE active AND database = 'default'")).map(([p]) => p)
    check(live.length > 0, 'there are parts')
    equal(parts(d, 'waited').filter((f) => !live.includes(f)).every((f) => fs.existsSync(f)), true, 'files of old parts')
    const readers = hasPackage('chdb', 'readers') ? 'duckdb,chdb,hyparquet' : 'duckdb,hyparquet'
    const { stdout, stderr } = await run('node', [path.join(tools, 'readers/check.mjs'), 'compare', '--compact', '--readers', readers, ...live])
    const verdicts = stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line))
    equal(verdicts.length, live.length, `verdicts ${stderr}`)
    for (const v of verdicts) check(v.verdict === 'exact' || v.verdict === 'lenient', JSON.stringify(v))
    console.log(`${live.length} parts read alike by ${readers}`)
  },
})
