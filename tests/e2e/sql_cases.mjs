// SELECTs over metrics and clicks (tests/cases/sql/*.jsonl) with what the ClickHouse engine (26.7.2.1) said: the same names,
// types and values, or the same error. They run in their order, those with a "session" in one. A case with "refused" is one
// we do not understand: any error will do, another answer will not. sql_cases.mjs FLOOR wants that many answered; --record asks the engine anew, where script/test has fetched it.
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { Daemon, check, root, test, tools } from './lib.mjs'

const dir = path.join(root, 'tests/cases/sql')
const tables = {
  metrics: {
    columns: 'ts DateTime64(3), service LowCardinality(String), host String, region String, metric String, value Float64, tags Map(String, String)',
    order: '(service, metric, ts)', format: 'JSONEachRow', file: path.join(root, 'tests/data/metrics/rows.ndjson'),
  },
  clicks: {
    columns: `id UInt64, ts DateTime, user String, region LowCardinality(String), latency Nullable(Float64), price Decimal(10, 2),
      tags Array(String), ok Bool, d Date, uid UUID, ip IPv4, kind Enum8('view' = 1, 'buy' = 2), p Tuple(x UInt8, y String)`,
    order: 'id', format: 'TabSeparated', file: path.join(dir, 'clicks.tsv'),
  },
}

async function ask(url, query, params, body) {
  const r = await fetch(`${url}/?${new URLSearchParams({ query, ...params })}`, { method: 'POST', body: body ?? '' })
  const text = await r.text()
  return r.ok ? { answer: text } : { error: Number(r.headers.get('x-clickhouse-exception-code')) }
}

async function load(url) {
  for (const [name, t] of Object.entries(tables)) {
    for (const [query, body] of [[`CREATE TABLE ${name} (${t.columns}) ENGINE = MergeTree ORDER BY ${t.order}`],
      [`INSERT INTO ${name} FORMAT ${t.format}`, fs.readFileSync(t.file)]]) {
      const { error } = await ask(url, query, {}, body)
      check(!error, `${query}: ${error}`)
    }
  }
}

const select = (url, { query, session }) =>
  ask(url, query, { default_format: 'TabSeparatedWithNamesAndTypes', max_threads: 1, ...session && { session_id: session } })
const read = (file) => fs.readFileSync(path.join(dir, file), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line))
const files = fs.readdirSync(dir).filter((name) => name.endsWith('.jsonl')).sort()

// Sums of floats depend on the order of the rows: the last digits do not count.
function same(got, want) {
  if (got === want) return true
  const [a, b] = [got, want].map((text) => text.split(/[\t\n]/))
  return a.length === b.length && a.every((cell, i) => cell === b[i] || Math.abs(cell - b[i]) <= 1e-12 * Math.abs(b[i]))
}

async function record() {
  const { startRefServer } = await import(pathToFileURL(path.join(tools, 'refserver.mjs')))
  const engine = await startRefServer()
  const url = engine.url.replace(/\/$/, '')
  await load(url)
  for (const file of files) {
    const lines = []
    for (const { query, session, refused } of read(file)) {
      lines.push(JSON.stringify({ query, session, ...await select(url, { query, session }), refused }))
    }
    fs.writeFileSync(path.join(dir, file), lines.join('\n') + '\n')
  }
  await engine.stop()
}

if (process.argv[2] === '--record') {
  await record()
} else {
  const floor = Number(process.argv[2])
  const d = await Daemon.start()
  await test(d, {
    'the tables': () => load(d.url),
    'every answer is the engine\'s': async () => {
      const wrong = []
      let answered = 0
      for (const { query, session, answer, error, refused } of files.flatMap(read)) {
        const got = await select(d.url, { query, session })
        const right = got.answer !== undefined && answer !== undefined && same(got.answer, answer)
        answered += right
        if (!right && !(got.error !== undefined && (refused || got.error === error))) {
          wrong.push(`${query}\n  got  ${JSON.stringify(got)}\n  want ${JSON.stringify({ answer, error })}`)
        }
      }
      check(wrong.length === 0, `${wrong.length} wrong\n${wrong.join('\n')}`)
      check(answered >= floor, `${answered} answered of at least ${floor}`)
      console.log(`${answered} answered as the engine does`)
    },
  })
}
