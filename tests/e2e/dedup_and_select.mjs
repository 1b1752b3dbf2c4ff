// What is the same insert: by token, by content where rows carry a time, through merges and restarts; and INSERT ... SELECT,
// which is never the same. Replacing tables over the wire.
import { Daemon, check, equal, test } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=2'] })
const insert = async (table, body, params = {}) => {
  const a = await d.insert(table, body, params)
  equal(a.status, 200, `${table}: ${a.text}`)
  return a.headers['x-sluice-duplicate'] === '1'
}
const count = async (table) => Number((await d.rows(`SELECT count() FROM ${table}`))[0][0])
const post = (query, params = {}, method = 'POST') =>
  d.request({ method, path: `/?${new URLSearchParams({ query, ...params })}` })

await test(d, {
  'rows with a time of their own are recognised, bare events are not': async () => {
    await d.sql('CREATE TABLE timed (ts DateTime, v UInt32, seen DateTime DEFAULT now()) ENGINE = MergeTree ORDER BY ts')
    await d.sql('CREATE TABLE bare (v UInt32) ENGINE = MergeTree ORDER BY v')
    const row = '{"ts":"2026-01-01 00:00:00","v":1,"seen":"2026-01-01 00:00:01"}'
    equal([await insert('timed', row), await insert('timed', row)], [false, true], 'with a time')
    equal([await insert('bare', '{"v":1}'), await insert('bare', '{"v":1}')], [false, false], 'without')
    equal([await insert('timed', '{"ts":"2026-01-02 00:00:00"}'), await insert('timed', '{"ts":"2026-01-02 00:00:00"}')],
      [false, false], 'now() took part')
    equal([await count('timed'), await count('bare')], [3, 2], 'rows')
  },
  'the identity outlives a merge and kill -9': async () => {
    const row = '{"ts":"2026-01-01 00:00:00","v":1,"seen":"2026-01-01 00:00:01"}'
    await d.sql('OPTIMIZE TABLE timed FINAL')
    equal(await insert('timed', row), true, 'after the merge')
    await d.kill()
    await d.launch()
    equal(await insert('timed', row), true, 'after the restart')
    equal(await insert('timed', row, { deduplicate_insert: 'disable' }), false, 'switched off for this one')
    equal(await count('timed'), 4, 'rows')
  },
  'a table whose creator set the window': async () => {
    await d.sql('CREATE TABLE asked (v UInt32) ENGINE = MergeTree ORDER BY v SETTINGS non_replicated_deduplication_window = 10')
    equal([await insert('asked', '{"v":1}'), await insert('asked', '{"v":1}')], [false, true], 'content')
    equal([await insert('asked', '{"v":1}', { insert_deduplication_token: 'x' }),
      await insert('asked', '{"v":2}', { insert_deduplication_token: 'x' })], [false, true], 'a token goes before it')
  },
  'INSERT ... SELECT': async () => {
    await d.sql("CREATE TABLE made (a UInt32, b String DEFAULT 'd', c Int8) ENGINE = MergeTree ORDER BY a")
    for (let i = 0; i < 2; i++) await d.sql('INSERT INTO made (c, a) SELECT v + 300, v FROM bare')
    equal(await d.rows('SELECT a, b, c, count() FROM made GROUP BY ALL'), [[1, 'd', 45, 4]], 'converted, defaults taken, both kept')
    for (let i = 0; i < 2; i++) await d.sql('INSERT INTO made (a) WITH 7 AS x SELECT x', { insert_deduplication_token: 'once' })
    equal(await d.rows('SELECT count() FROM made WHERE a = 7'), [[1]], 'under one token')
    await d.sql('INSERT INTO made SELECT * FROM made WHERE a = 100')
    const answers = [
      [await post('INSERT INTO made SELECT 1'), '20', 'too few columns'],
      [await post('INSERT INTO made (a) SELECT a FROM nope'), '60', 'no such table'],
      [await post('INSERT INTO made (a) SELECT (', {}), '62', 'no SELECT'],
      [await post('INSERT INTO made (a) SELECT 1', {}, 'GET'), '164', 'by GET'],
      [await post(`INSERT INTO made (a) SELECT 1 /* ${'y'.repeat(300)} */`, { max_query_size: 100 }), '62', 'too long'],
    ]
    for (const [a, code, what] of answers) equal(a.headers['x-clickhouse-exception-code'], code, `${what}: ${a.text}`)
    const good = await post('INSERT INTO made (a) SELECT number FROM numbers(5)')
    equal([good.status, good.headers['x-sluice-ack'], JSON.parse(good.headers['x-clickhouse-summary']).written_rows],
      [200, 'stored', '5'], 'answer')
    equal(await count('made'), 10, 'rows')
  },
  'limits of the store by the request': async () => {
    await d.sql('CREATE TABLE parted (p UInt32) ENGINE = MergeTree PARTITION BY p ORDER BY p')
    const a = await post('INSERT INTO parted SELECT number FROM numbers(101)')
    equal([a.status, a.headers['x-clickhouse-exception-code']], [503, '252'], a.text)
    await d.sql('INSERT INTO parted SELECT number FROM numbers(101)', { throw_on_max_partitions_per_insert_block: 0 })
    equal(await count('parted'), 101, 'rows')
    const b = await d.insert('parted', '{"p":1}', { parts_to_throw_insert: 1 })
    equal([b.status, b.headers['x-clickhouse-exception-code']], [503, '252'], b.text)
    check(b.headers['retry-after'], 'says when to come back')
  },
  'a Replacing table': async () => {
    await d.sql('CREATE TABLE latest (k UInt32, v UInt32) ENGINE = ReplacingMergeTree(v) ORDER BY k')
    await d.sql('SYSTEM STOP MERGES latest')
    await insert('latest', '{"k":1,"v":5}\n{"k":1,"v":9}\n{"k":2,"v":1}')
    await insert('latest', '{"k":1,"v":7}')
    equal(await d.rows('SELECT k, v FROM latest ORDER BY ALL'), [[1, 7], [1, 9], [2, 1]], 'each insert by itself')
    equal(await d.rows('SELECT k, v FROM latest FINAL ORDER BY ALL'), [[1, 9], [2, 1]], 'FINAL')
    await d.sql('SYSTEM START MERGES latest')
    await d.sql('OPTIMIZE TABLE latest FINAL')
    equal(await d.rows('SELECT k, v FROM latest ORDER BY ALL'), [[1, 9], [2, 1]], 'merged')
    await d.restart()
    equal(await d.rows('SELECT k, v FROM latest ORDER BY ALL'), [[1, 9], [2, 1]], 'after a restart')
  },
})
