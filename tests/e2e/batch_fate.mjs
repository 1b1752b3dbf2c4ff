// Inserts share a batch, never a fate: one bad insert among a thousand is refused alone; when nobody waits for it, it becomes
// a dead letter that names row and column, and can be replayed after the table was mended, or dropped.
import { Daemon, check, equal, parallel, test } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=200', '--set', 'async_insert_max_query_number=1000'] })
const bad = (n) => `{"id":${n},"v":1}\n{"id":${n},"v":"no number"}`
await test(d, {
  '999 good inserts and a bad one wait together': async () => {
    await d.sql('CREATE TABLE t (id UInt64, v UInt32) ENGINE = MergeTree ORDER BY id')
    const bodies = Array.from({ length: 1000 }, (_, i) => (i === 500 ? bad(i) : `{"id":${i},"v":${i}}`))
    d.agent.maxSockets = 1000
    const answers = await parallel(1000, bodies.map((body) => () => d.insert('t', body)))
    const refused = answers.filter((a) => a.status !== 200)
    equal(refused.length, 1, 'refused inserts')
    equal(refused[0].status, 400, 'its status')
    equal(refused[0].headers['x-clickhouse-exception-code'], '27', 'its code')
    check(/\(at row 2\)/.test(refused[0].text), `row is named: ${refused[0].text}`)
    check(refused[0].text.includes('v'), `column is named: ${refused[0].text}`)
    equal(await d.rows('SELECT count(), sum(v) FROM t'), [[999, (999 * 1000) / 2 - 500]], 'rows')
    const shared = new Set(answers.map((a) => a.headers['x-sluice-batch']))
    check(shared.size < 100, `${shared.size} batches`)
    check(answers.some((a) => a.status === 200 && a.headers['x-sluice-batch'] === refused[0].headers['x-sluice-batch']),
      'a good insert was in the same batch')
  },
  'rows that are refused are counted, when they are typed and by their framing': async () => {
    equal(await d.metric('sluice_rows_rejected_total'), 2, 'both rows of the one above')
    const torn = await d.insert('t', '{"id":1,"v":1}\n{"id":', { wait_for_async_insert: 0 })
    equal(torn.headers['x-clickhouse-exception-code'], '33', torn.text)
    check(await d.metric('sluice_rows_rejected_total') >= 3, 'and of this one at least one')
  },
  'a time that no timestamp of a part can hold is refused alone': async () => {
    await d.sql('CREATE TABLE times (n UInt32, at DateTime64(3)) ENGINE = MergeTree ORDER BY n')
    const bodies = Array.from({ length: 20 }, (_, n) => `{"n":${n},"at":${n === 7 ? '1709201472123456789' : '1709201472123'}}`)
    const answers = await parallel(20, bodies.map((body) => () => d.insert('times', body)))
    equal(answers.map((a) => a.status).filter((status) => status !== 200), [500], 'refused inserts')
    equal(answers[7].headers['x-clickhouse-exception-code'], '69', 'its code')
    check(answers.some((a) => a.status === 200 && a.headers['x-sluice-batch'] === answers[7].headers['x-sluice-batch']),
      'a good insert was in the same batch')
    equal(await d.rows('SELECT count(), max(at) FROM times'), [[19, '2024-02-29 10:11:12.123']], 'rows')
  },
  'P-7: what a DEFAULT or the limit of partitions refuses is refused alone': async () => {
    const cases = [
      ['s String, x UInt8 DEFAULT toUInt8(s)', '', (n) => `{"s":"${n}"}`, '{"s":"abc"}', '6'],
      ['s UInt32, x UInt32 DEFAULT intDiv(10, s)', '', (n) => `{"s":${n + 1}}`, '{"s":0}', '153'],
      ['s UInt32', 'PARTITION BY s SETTINGS max_partitions_per_insert_block = 3', (n) => `{"s":${n % 5}}`, '{"s":1}{"s":2}{"s":3}{"s":4}', '252'],
    ]
    for (const [columns, clauses, good, guilty, code] of cases) {
      const [before, settings] = clauses.split(' SETTINGS ')
      await d.sql(`CREATE OR REPLACE TABLE alone (${columns}) ENGINE = MergeTree ${before} ORDER BY s ${settings ? `SETTINGS ${settings}` : ''}`)
      const answers = await parallel(20, Array.from({ length: 20 }, (_, n) => () => d.insert('alone', n === 7 ? guilty : good(n))))
      const refused = answers.filter((a) => a.status !== 200).map((a) => a.headers['x-clickhouse-exception-code'])
      equal([refused, Number(await d.sql('SELECT count() FROM alone'))], [[code], 19], columns)
    }
  },
  'nobody waits: one letter, whose reason names row and column': async () => {
    const a = await d.insert('t', bad(7777), { wait_for_async_insert: 0 })
    equal([a.status, a.headers['x-sluice-ack']], [200, 'buffered'], 'answer')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    const letters = await d.rows('SELECT code, row, column, reason, database, table, format, attempts, body FROM system.dead_letter_queue')
    equal(letters.length, 1, 'letters')
    const [code, row, column, reason, ...rest] = letters[0]
    equal([code, Number(row), column], [27, 2, 'v'], 'code, row, column')
    check(reason.includes('at row 2'), reason)
    equal(rest, ['default', 't', 'JSONEachRow', 1, bad(7777)], 'the rest of the letter')
    equal(await d.rows('SELECT count() FROM t WHERE id = 7777'), [[0]], 'none of its rows is stored')
  },
  'a torn row is let pass where errors are, and refused where they are not': async () => {
    const torn = '{"id":6001,"v":1}\n{"id":6002,"v":2'
    const strict = await d.insert('t', torn, { wait_for_async_insert: 0 })
    equal([strict.status, strict.headers['x-clickhouse-exception-code']], [500, '33'], 'at admission')
    for (const tolerance of [{ input_format_allow_errors_num: 1 }, { input_format_allow_errors_ratio: 0.5 }]) {
      const a = await d.insert('t', torn, tolerance)
      equal([a.status, a.headers['x-sluice-ack']], [200, 'stored'], a.text)
    }
    const none = await d.insert('t', '{"id":6003,"v":3', { input_format_allow_errors_ratio: 0.5 })
    equal(none.status, 500, 'one row of one is more than half')
    equal(await d.rows('SELECT id, count() FROM t WHERE id >= 6000 AND id < 7000 GROUP BY id'), [[6001, 2]], 'rows')
  },
  'values that no column takes are counted and logged': async () => {
    const before = await d.metric('sluice_fields_skipped_total')
    const a = await d.insert('t', '{"id":6100,"v":1,"x":1,"y":{"z":2}}\n{"id":6101,"v":2,"x":3}')
    equal(a.status, 200, a.text)
    const refused = await d.insert('t', '{"id":6102,"v":1,"x":1}\n{"id":6103,"v":"q"}')
    equal(refused.status, 400, 'a bad row')
    equal((await d.metric('sluice_fields_skipped_total')) - before, 3, 'of what was stored')
    const logged = await d.rows(`SELECT fields_skipped FROM system.asynchronous_insert_log WHERE query_id = '${a.headers['x-clickhouse-query-id']}'`)
    equal(logged.map(([n]) => Number(n)), [3], 'in the log')
  },
  'it survives kill -9': async () => {
    await d.kill()
    await d.launch()
    equal(await d.rows('SELECT count() FROM system.dead_letter_queue'), [[1]], 'letters')
    equal(await d.rows('SELECT count() FROM t WHERE id < 1000'), [[999]], 'rows')
  },
  'replay before the mending changes nothing': async () => {
    const [[id]] = await d.rows('SELECT id FROM system.dead_letter_queue')
    const verdicts = await d.rows(`SYSTEM REPLAY DEAD LETTERS ID '${id}'`).catch((e) => e)
    check(!(verdicts instanceof Error), String(verdicts))
    equal(verdicts[0][0], id, 'the verdict names the letter')
    equal(await d.rows('SELECT count(), max(attempts) FROM system.dead_letter_queue'), [[1, 2]], 'letters and attempts')
  },
  'a letter about a missing column is stored after ALTER and replay': async () => {
    await d.insert('t', '{"id":8888,"v":1,"note":"x"}', { wait_for_async_insert: 0, input_format_skip_unknown_fields: 0 })
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    const [[id, code]] = await d.rows("SELECT id, code FROM system.dead_letter_queue WHERE code = 117")
    equal(code, 117, 'code')
    await d.sql('ALTER TABLE t ADD COLUMN note String')
    await d.sql(`SYSTEM REPLAY DEAD LETTERS ID '${id}'`)
    equal(await d.rows('SELECT id, v, note FROM t WHERE id = 8888'), [[8888, 1, 'x']], 'the row')
    equal(await d.rows(`SELECT count() FROM system.dead_letter_queue WHERE id = '${id}'`), [[0]], 'the letter is gone')
  },
  'drop forgets the other': async () => {
    const [[id]] = await d.rows('SELECT id FROM system.dead_letter_queue')
    await d.sql(`SYSTEM DROP DEAD LETTERS ID '${id}'`)
    equal(await d.rows('SELECT count() FROM system.dead_letter_queue'), [[0]], 'letters')
  },
})
