// CONSTRAINT ... CHECK: an insert with a row that violates it is refused alone, whatever way it came; nobody waits: a dead letter,
// stored by a replay once the constraint is gone.
import { Daemon, check, equal, parallel, test } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=200', '--set', 'async_insert_max_query_number=100'] })
const code = (a) => a.headers['x-clickhouse-exception-code']
const created = () => d.sql('SHOW CREATE TABLE c FORMAT TSVRaw')
await test(d, {
  'one of a batch violates it': async () => {
    await d.sql("CREATE TABLE c (n UInt32, s String DEFAULT 'none', CONSTRAINT small CHECK n < 1000 AND s != 'bad', CONSTRAINT a ASSUME n = 1) ENGINE = MergeTree ORDER BY n")
    const answers = await parallel(20, Array.from({ length: 20 }, (_, n) => () => d.insert('c', `{"n":${n}}\n{"n":${n === 7 ? 5000 : n}}`)))
    equal(answers.map((a) => a.status).filter((status) => status !== 200), [500], 'refused inserts')
    equal(code(answers[7]), '469', 'its code')
    check(answers[7].text.includes("Constraint `small` for table default.c is violated at row 2. Expression: ((n < 1000) AND (s != 'bad')). Column values: n = 5000, s = 'none'. (VIOLATED_CONSTRAINT)"), answers[7].text)
    check(answers.some((a) => a.status === 200 && a.headers['x-sluice-batch'] === answers[7].headers['x-sluice-batch']),
      'a good insert was in the same batch')
    equal(await d.rows('SELECT count(), max(n) FROM c'), [[38, 19]], 'rows')
  },
  'neither the way nor the settings of an insert let it pass': async () => {
    for (const settings of [{ async_insert: 0 }, { optimize_on_insert: 0 }, { input_format_allow_errors_num: 10 }, { sluice_ack: 'stored' }])
      equal(code(await d.insert('c', '{"n":1}\n{"n":1000}', settings)), '469', JSON.stringify(settings))
    const selected = await d.request({ path: `/?query=${encodeURIComponent('INSERT INTO c (n) SELECT n + 990 FROM c')}` })
    equal([selected.status, code(selected)], [500, '469'], 'INSERT SELECT')
    equal(await d.rows('SELECT count(), max(n) FROM c'), [[38, 19]], 'rows')
  },
  'nobody waits: a letter, that a replay stores when the constraint is gone': async () => {
    equal((await d.insert('c', '{"n":77,"s":"bad"}', { wait_for_async_insert: 0 })).status, 200, 'taken')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    const [[id, number, reason]] = await d.rows('SELECT id, code, reason FROM system.dead_letter_queue')
    equal(number, 469, 'code')
    check(reason.includes("n = 77, s = 'bad'"), reason)
    const dry = `SYSTEM REPLAY DEAD LETTERS DRY RUN ID '${id}'`
    const fate = async (statement) => (await d.rows(statement))[0][1]
    equal(await fate(dry), 'refused', 'dry run')
    equal(await fate(`SYSTEM REPLAY DEAD LETTERS ID '${id}'`), 'refused', 'replay')
    await d.sql('ALTER TABLE c DROP CONSTRAINT small')
    equal(await fate(dry), 'would_store', 'dry run without the constraint')
    equal(await fate(`SYSTEM REPLAY DEAD LETTERS ID '${id}'`), 'stored', 'replay without the constraint')
    equal(await d.rows('SELECT s FROM c WHERE n = 77'), [['bad']], 'the row')
  },
  'it follows its column through ALTER and a restart': async () => {
    await d.sql('ALTER TABLE c ADD CONSTRAINT IF NOT EXISTS text CHECK length(s) > 2, ADD INDEX i s TYPE bloom_filter')
    const dropped = await d.request({ path: `/?query=${encodeURIComponent('ALTER TABLE c DROP COLUMN s')}` })
    equal([dropped.status, code(dropped)], [404, '47'], 'the column is needed')
    await d.sql('ALTER TABLE c RENAME COLUMN s TO word')
    await d.restart()
    check((await created()).includes('INDEX i word TYPE bloom_filter GRANULARITY 1,\n    CONSTRAINT a ASSUME n = 1,\n    CONSTRAINT text CHECK length(word) > 2\n'), await created())
    equal(code(await d.insert('c', '{"n":2,"word":"ab"}')), '469', 'too short')
    equal((await d.insert('c', '{"n":2,"word":"abc"}')).status, 200, 'long enough')
  },
})
