// Readers see every acknowledged row once and no row twice while inserts, merges and OPTIMIZE go on.
import { Daemon, check, equal, test, until } from './lib.mjs'

const writers = 4, inserts = 60, readers = 3
const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=5'] })

// Row n is written once, with itself as its value: any set of rows is told by its count, sum and distinct values.
let next = 1
const acknowledged = new Set()
let acknowledgedSum = 0

async function write(writer) {
  for (let i = 0; i < inserts; i++) {
    const ids = Array.from({ length: 1 + ((writer + i) % 5) }, () => next++)
    const body = ids.map((id) => JSON.stringify({ p: id % 3, id, text: `row ${id}` })).join('\n')
    const answer = await d.insert('t', body, i % 2 ? { async_insert: 0 } : {})
    equal(answer.status, 200, answer.text)
    for (const id of ids) {
      acknowledged.add(id)
      acknowledgedSum += id
    }
  }
}

let running = true, looks = 0
async function read() {
  for (; running; looks++) {
    const before = { count: acknowledged.size, sum: acknowledgedSum }
    const [[count, sum, distinct]] = await d.rows('SELECT count(), sum(id), uniqExact(id) FROM t')
    equal(Number(count), Number(distinct), 'rows and distinct rows')
    check(Number(count) >= before.count, `${count} rows, ${before.count} were acknowledged before`)
    check(Number(sum) >= before.sum, `sum ${sum}, ${before.sum} was acknowledged before`)
    check(Number(count) <= next - 1, `${count} rows, ${next - 1} were sent`)
    const latest = [...acknowledged].slice(-50)
    if (latest.length === 0) continue
    const [found] = await d.rows(`SELECT count(), sum(id) FROM t WHERE id IN (${latest.join()})`)
    equal(found.map(Number), [latest.length, latest.reduce((total, id) => total + id)], 'the rows acknowledged last')
  }
}

let optimized = 0
async function optimize() {
  for (; running; optimized++) await d.sql(optimized % 2 ? 'OPTIMIZE TABLE t FINAL' : `OPTIMIZE TABLE t PARTITION ${optimized % 3}`)
}

await test(d, {
  'a table': () => d.sql('CREATE TABLE t (p UInt8, id UInt64, text String) ENGINE = MergeTree PARTITION BY p ORDER BY id SETTINGS old_parts_lifetime = 1'),
  'sums hold while rows come and parts are merged': async () => {
    const readings = Array.from({ length: readers }, read)
    const optimizing = optimize()
    await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
    await until(() => looks > 20, 'the readers to look')
    running = false
    await Promise.all([...readings, optimizing])
    console.log(`  ${looks} looks, ${optimized} times OPTIMIZE, ${acknowledged.size} rows`)
    check(optimized > 3, 'OPTIMIZE ran')
  },
  'all rows are there once': async () => {
    await d.sql('OPTIMIZE TABLE t FINAL')
    const ids = (await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id))
    equal(ids, Array.from({ length: next - 1 }, (_, i) => i + 1), 'ids')
    equal(Number(await d.sql("SELECT count() FROM system.parts WHERE table = 't' AND active")), 3, 'a part for each partition')
    equal(await d.rows('SELECT * FROM system.merges'), [], 'no merge runs')
  },
  'and after kill -9': async () => {
    await d.kill()
    await d.launch()
    equal((await d.rows('SELECT count(), sum(id), uniqExact(id) FROM t'))[0].map(Number), [next - 1, acknowledgedSum, next - 1], 'sums')
  },
})
